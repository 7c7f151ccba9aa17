/* Sockets of a network, asked of the kernel (NETLINK_SOCK_DIAG): one question, many answers. */
#ifndef COOP_BASE_SOCK_DIAG_H
#define COOP_BASE_SOCK_DIAG_H

#include <stddef.h>

#define COOP_SOCK_DIAG_QUESTION_MAX 64u

/* A socket to ask by, in the network that the thread is in now: the caller's; or -errno. */
int coop_sock_diag_open(void);

/* Asks for all sockets that `question` (struct unix_diag_req, struct inet_diag_req_v2) is about,
 * and gives `each` what the kernel tells of one, aligned for its structs; what it returns below
 * zero ends it. Never waits. 0 or -errno: then the socket is good for no further question. */
int coop_sock_diag_ask(int fd, const void *question, size_t size,
		       int (*each)(void *user, const void *told, size_t size), void *user);

#endif
