/* The end of an agent and of all below it: tokens, connections, processes, folders. */
#ifndef COOP_KEEPER_AGENT_REMOVE_H
#define COOP_KEEPER_AGENT_REMOVE_H

#include <stdint.h>

struct coop_agent;

/* Because its time is over; nobody is answered. Whether it came about or failed, `expiring` is
 * false and coop_expiry_look has been called when it is over. 0 or -ENOMEM: then nothing was
 * begun. */
int coop_agent_remove_expired(struct coop_agent *agent, uint64_t grace_ms);

#endif
