/* The keeper's sockets: who holds them, who may connect. There are two: the user's own, and the
 * gate, where a connection is nobody's until it has shown a token. */
#ifndef COOP_KEEPER_LISTENER_H
#define COOP_KEEPER_LISTENER_H

#include <stdbool.h>
#include <uv.h>

#include "interface/err.h"
#include "keeper/link/connection.h"

struct coop_keeper;

struct coop_listener {
	struct coop_keeper *keeper;
	uv_poll_t poll;
	uv_timer_t again; /* runs while not even the spare descriptor is there */
	int fd;
	enum coop_conn_as as; /* what its connections begin as */
	bool open, starved;
};

/* Takes the claims (base/claim.h) and the locks that make this the only keeper of its socket and
 * its state folder. One that is on its way out is waited for a while; one that starts or serves is
 * not. 0, or the error filled (exists: there is one). Before coop_keeper_init. */
int coop_listener_lock(struct coop_keeper *keeper, struct coop_err *err);

/* After the fork the claims are the keeper's, which says its number there, and not the guard's,
 * which lets go of them: they must not outlive the keeper. The locks do, until the guard is
 * done. */
void coop_listener_take_over(struct coop_keeper *keeper);
void coop_listener_let_go(struct coop_keeper *keeper);

/* Binds the sockets and accepts. 0, or the error filled. Where the gate cannot be, the log says so,
 * and gate_path stays empty. */
int coop_listener_open(struct coop_keeper *keeper, struct coop_err *err);

/* No further connection: the sockets' names go too. */
void coop_listener_close(struct coop_keeper *keeper);

#endif
