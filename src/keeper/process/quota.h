/* Limits on what may be started: checked for the agent, for all above it, for the principal and the
 * host, before anything is forked. What an agent uses counts for all above it. */
#ifndef COOP_KEEPER_QUOTA_H
#define COOP_KEEPER_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "interface/err.h"

struct coop_agent;
struct coop_process;

/* What a connection's client has not read, and the agent that it counts for; zero-initialised. */
struct coop_unread {
	struct coop_agent *agent; /* a reference; NULL: nobody's */
	uint64_t bytes;
};

/* Whether the agent may have one more live process: 0, or the error filled. */
int coop_quota_running(struct coop_agent *agent, struct coop_err *err);

/* Whether it may start a persistent one. */
int coop_quota_persistent(const struct coop_agent *agent, struct coop_err *err);

/* Whether there is room for so many bytes of output more, or could be if finished records went.
 * Changes nothing. */
int coop_quota_buffer(struct coop_agent *agent, uint64_t bytes, struct coop_err *err);

/* Lets finished records go until there is that room. */
void coop_quota_make_room(struct coop_agent *agent, uint64_t bytes);

/* From now on the process counts with so many bytes. */
void coop_quota_charge(struct coop_process *process, uint64_t bytes);

/* From now on so many bytes that wait to be sent count for the agent and all above it, as memory
 * for output does; with none, or for nobody (NULL), nothing is held. Refuses nothing: whoever
 * sends looks at coop_quota_full. */
void coop_quota_unread(struct coop_unread *unread, struct coop_agent *agent, uint64_t bytes);

/* Whether the agent or one above it is over its limit of memory for output: by what is unread, as
 * processes are only started within it. */
bool coop_quota_full(const struct coop_agent *agent);

/* One more, or one less, of the live and of the finished processes. */
void coop_quota_count(const struct coop_process *process, int live, int finished);

#endif
