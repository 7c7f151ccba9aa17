/* One message with file descriptors over a Unix socket. */
#ifndef COOP_BASE_FDPASS_H
#define COOP_BASE_FDPASS_H

#include <stddef.h>
#include <sys/types.h>

#define COOP_FDPASS_MAX 33

/* Sends one message of `size` bytes with `count` fds. Returns 0, or -errno (-EAGAIN: no room
 * now). */
int coop_fdpass_send(int socket, const void *bytes, size_t size, const int *fds, size_t count);

/* Receives one message of at most `size` bytes. The fds are close-on-exec and the caller's. Returns
 * the message's size, 0 at the end of the connection, or -errno (-EMSGSIZE: it did not fit, or had
 * too many fds; none are kept). */
ssize_t coop_fdpass_receive(int socket, void *bytes, size_t size, int *ret_fds, size_t *ret_count);

#endif
