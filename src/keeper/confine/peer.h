/* Who connects: whether it is one of those that the keeper confines. */
#ifndef COOP_KEEPER_PEER_H
#define COOP_KEEPER_PEER_H

#include <stdbool.h>
#include <sys/types.h>

struct coop_keeper;

/* Whether the process may ask for anything here: neither it nor one above it is kept and confined,
 * whatever the file system lets it reach. One that cannot be looked at may not. */
bool coop_peer_may_connect(struct coop_keeper *keeper, pid_t pid);

#endif
