/* The net namespaces of sessions, as a launcher knows them. It keeps one only until the keeper is
 * known to have it. */
#ifndef COOP_LAUNCHER_NETWORK_H
#define COOP_LAUNCHER_NETWORK_H

#include "sandbox/plan/plan.h"

/* Leaves the host's network for one of nobody's, to come back to between plans. 0 or -errno. */
int coop_network_init(void);

/* Enters the session's, as the plan says. 0 or -errno. *ret_made is the fd to be sent with the
 * reply, or -1. */
int coop_network_enter(const struct coop_plan *plan, int fd, int *ret_made);

/* The keeper has it: it is no longer kept here. */
void coop_network_forget(uint64_t id);

/* Back to nobody's: a launcher must not keep the network of a session that has ended. */
void coop_network_leave(void);

#endif
