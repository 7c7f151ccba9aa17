/* The keeper's sockets: who holds them, who may connect. There are two: the user's own, and the
 * gate, where a connection is nobody's until it has shown a token. */
#ifndef COOP_KEEPER_LISTENER_H
#define COOP_KEEPER_LISTENER_H

#include <stdbool.h>
#include <sys/types.h>
#include <sys/un.h>
#include <uv.h>

#include "interface/err.h"
#include "keeper/link/connection.h"

struct coop_keeper;
struct coop_listeners;

/* `may_connect` says whether a process may ask for anything here, once the kernel has said that its
 * user may. NULL without memory. */
struct coop_listeners *coop_listeners_new(struct coop_keeper *keeper,
					  bool (*may_connect)(struct coop_keeper *keeper,
							      pid_t pid));

/* The address of a socket, whose path has been checked to fit (coop_paths_socket). */
struct sockaddr_un coop_listener_address(const char *path);

/* Binds the sockets and accepts. 0, or the error filled. Where the gate cannot be, the log says so.
 */
int coop_listener_open(struct coop_keeper *keeper, struct coop_err *err);

/* The path of the gate; "": there is none. */
const char *coop_listener_gate(const struct coop_keeper *keeper);

/* No further connection: the sockets' names go too. */
void coop_listener_close(struct coop_keeper *keeper);

#endif
