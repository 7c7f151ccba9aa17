/* The claims (base/io/claim.h) and locks that make this the only keeper of its socket and of its
 * state folder. */
#ifndef COOP_KEEPER_LOCKS_H
#define COOP_KEEPER_LOCKS_H

#include "interface/err.h"

struct coop_place;

struct coop_locks {
	int socket;
	int claims[2]; /* of the socket and of the state folder; -1: none */
};

/* Takes them. One that is on its way out is waited for a while; one that starts or serves is not.
 * The place's paths are as they resolve from then on. 0, or the error filled (exists: there is
 * one). */
int coop_locks_take(struct coop_locks *locks, struct coop_place *place, struct coop_err *err);

/* After the fork the claims are the keeper's, which says its number there, and not the guard's,
 * which lets go of them: they must not outlive the keeper. The locks do, until the guard is done.
 * A keeper that leaves lets go of its claims, too: the next one waits for its end then. */
void coop_locks_take_over(struct coop_locks *locks);
void coop_locks_let_go(struct coop_locks *locks);

#endif
