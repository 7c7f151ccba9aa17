/* What an agent's clients and processes have in memory: it counts for the agent and for all above
 * it, each of which has a limit. */
#ifndef COOP_KEEPER_ACCOUNT_H
#define COOP_KEEPER_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

struct coop_agent;

/* What a connection's client has not read, and the agent that it counts for; zero-initialised. */
struct coop_unread {
	struct coop_agent *agent; /* a reference; NULL: nobody's */
	uint64_t bytes;
};

/* From now on so many bytes that wait to be sent count for the agent and all above it, as memory
 * for output does; with none, or for nobody (NULL), nothing is held. Refuses nothing: whoever
 * sends looks at coop_account_full. */
void coop_account_unread(struct coop_unread *unread, struct coop_agent *agent, uint64_t bytes);

/* Whether the agent or one above it is over its limit of memory for output: by what is unread, as
 * processes are only started within it. */
bool coop_account_full(const struct coop_agent *agent);

/* By how much this one would be over its limit with so many bytes more. */
uint64_t coop_account_excess(const struct coop_agent *agent, uint64_t bytes);

#endif
