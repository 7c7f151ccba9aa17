/* Limits on what may be started: checked for the agent, for all above it, for the principal and the
 * host, before anything is forked. What an agent uses counts for all above it. */
#ifndef COOP_KEEPER_QUOTA_H
#define COOP_KEEPER_QUOTA_H

#include <stdbool.h>
#include <stdint.h>

#include "interface/err.h"

struct coop_agent;
struct coop_process;

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

/* One more, or one less, of the live and of the finished processes. */
void coop_quota_count(const struct coop_process *process, int live, int finished);

/* The last of the streams of an ended process has ended: from now on it counts with what it
 * holds. */
void coop_quota_recharge(struct coop_process *process);

#endif
