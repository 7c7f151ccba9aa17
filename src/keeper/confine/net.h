/* The network of a session: a net namespace with nothing but loopback in it, which all of its
 * confined processes share and nobody else reaches. It outlives the last of them for a while: to
 * make one takes the kernel longer than all the other namespaces together, and commands come one
 * after the other. */
#ifndef COOP_KEEPER_NET_H
#define COOP_KEEPER_NET_H

#include <stdint.h>
#include <uv.h>

#include "base/list.h"

struct coop_keeper;

struct coop_net {
	struct coop_net **home; /* where the session keeps it; NULL once the session is gone */
	uint64_t id;
	int fd; /* -1: no launcher has made it yet */
	unsigned users;
	uint32_t uid; /* whose launcher made it: those of others cannot enter it */
	struct coop_keeper *keeper;
	struct coop_link in_idle; /* while nobody uses it */
	uint64_t idle_since;
};

/* `on_orphan`: the session of a network goes, or nobody is in it any more. NULL without memory. */
struct coop_nets *coop_nets_new(struct coop_keeper *keeper,
				void (*on_orphan)(const struct coop_net *net));
/* How many there are. */
unsigned coop_nets_count(const struct coop_keeper *keeper);
void coop_nets_free(struct coop_keeper *keeper);

/* Lets those go that nobody uses. */
void coop_nets_drop_idle(struct coop_keeper *keeper);

/* One more user of the session's; made if there is none. Somebody with another identity gets one of
 * his own. NULL without memory. */
struct coop_net *coop_net_take(struct coop_keeper *keeper, struct coop_net **home, uint32_t uid);
void coop_net_drop(struct coop_net *net);

/* The session is gone; who still uses its network keeps it. */
void coop_net_orphan(struct coop_net **home);

#endif
