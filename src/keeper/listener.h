/* The keeper's socket: who holds it, who may connect. */
#ifndef COOP_KEEPER_LISTENER_H
#define COOP_KEEPER_LISTENER_H

#include "base/err.h"

struct coop_keeper;

/* Takes the locks that make this the only keeper of its socket and its state folder, waiting a while for one that is on
 * its way out. 0, or the error filled (exists: there is one). Before coop_keeper_init. */
int coop_listener_lock(struct coop_keeper *keeper, struct coop_err *err);

/* Binds the socket and accepts. 0, or the error filled. */
int coop_listener_open(struct coop_keeper *keeper, struct coop_err *err);

/* No further connection: the socket's name goes too. */
void coop_listener_close(struct coop_keeper *keeper);

#endif
