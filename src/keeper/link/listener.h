/* The keeper's sockets: who holds them, who may connect. There are two: the user's own, and the
 * gate, where a connection is nobody's until it has shown a token. */
#ifndef COOP_KEEPER_LISTENER_H
#define COOP_KEEPER_LISTENER_H

#include <stdbool.h>
#include <uv.h>

#include "interface/err.h"
#include "keeper/link/connection.h"

struct coop_keeper;
struct coop_listeners;
struct coop_place;

/* NULL without memory. */
struct coop_listeners *coop_listeners_new(struct coop_keeper *keeper);

/* Takes the claims (base/io/claim.h) and the locks that make this the only keeper of its socket and
 * its state folder. One that is on its way out is waited for a while; one that starts or serves is
 * not. 0, or the error filled (exists: there is one). Before coop_keeper_init. */
int coop_listener_lock(struct coop_listeners *listeners, struct coop_place *place,
		       struct coop_err *err);

/* After the fork the claims are the keeper's, which says its number there, and not the guard's,
 * which lets go of them: they must not outlive the keeper. The locks do, until the guard is
 * done. */
void coop_listener_take_over(struct coop_keeper *keeper);
void coop_listener_let_go(struct coop_keeper *keeper);

/* Binds the sockets and accepts. 0, or the error filled. Where the gate cannot be, the log says so.
 */
int coop_listener_open(struct coop_keeper *keeper, struct coop_err *err);

/* The path of the gate; "": there is none. */
const char *coop_listener_gate(const struct coop_keeper *keeper);

/* No further connection: the sockets' names go too. */
void coop_listener_close(struct coop_keeper *keeper);

#endif
