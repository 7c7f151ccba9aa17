/* Who listens: TCP ports of a process's own tree, and those who wait for one.
 *
 * The kernel tells nobody of a new listener, so it is looked for: at once, and then every 100 ms
 * for all who wait together, with a bound on what one look may take. While nobody waits nothing is
 * done. */
#ifndef COOP_KEEPER_PORTS_H
#define COOP_KEEPER_PORTS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/list.h"

struct coop_process;

/* A search for one port. A look that would take too long ends early, and the next one goes on from
 * there. */
struct coop_port_search {
	uint16_t port;
	pid_t from_pid; /* where to go on; 0: at the beginning */
	int from_fd;
	/* Found: */
	bool found;
	pid_t pid; /* the first one of the tree that has the socket open */
	char address[INET6_ADDRSTRLEN];
};

/* Looks whether a process of its tree, which may have ended itself, has a TCP socket that listens
 * on the port in the network that the process was given. `exact`: also what began a moment ago. 0
 * with search->found said; -ENOTSUP: the kernel does not tell. */
int coop_ports_look(struct coop_process *process, struct coop_port_search *search, bool exact);

#endif
