/* The names of this network namespace's Unix sockets, asked of the kernel (NETLINK_SOCK_DIAG). Against /proc/net/unix this costs
 * an eighth where there are many, and a name with a line break in it is told whole. */
#ifndef COOP_BASE_UNIX_NAMES_H
#define COOP_BASE_UNIX_NAMES_H

#include <stddef.h>

#include "base/buf.h"

/* A socket to ask by: the caller's, -errno. */
int coop_unix_names_open(void);

/* Appends each name that is an absolute path, with its NUL, at most `max` of them: those of
 * connections too, which have their server's. Never waits. 0, or -errno with a part of them
 * appended; then the socket is good for nothing more. */
int coop_unix_names_ask(int socket, size_t max, struct coop_buf *ret);

#endif
