/* Who connects: whether it is one of those that the keeper confines. */
#ifndef COOP_KEEPER_PEER_H
#define COOP_KEEPER_PEER_H

#include <stdbool.h>
#include <sys/types.h>

struct coop_keeper;

/* Whether the process, or one above it, is kept and confined: then it may not ask for anything
 * here, whatever the file system lets it reach. One that cannot be looked at counts as such. */
bool coop_peer_confined(struct coop_keeper *keeper, pid_t pid);

#endif
