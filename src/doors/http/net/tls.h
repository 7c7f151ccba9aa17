/* TLS on a connection's own socket, behind the same two functions as plain bytes. */
#ifndef COOP_HTTP_TLS_H
#define COOP_HTTP_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct coop_tls;      /* certificate and key */
struct coop_tls_conn; /* one connection */

/* Reads certificate (with its chain) and key in PEM from descriptors, which stay the caller's.
 * NULL: ret_error says why. */
struct coop_tls *coop_tls_load(int certificate, int key, char *ret_error, size_t size);
void coop_tls_unload(struct coop_tls *tls); /* NULL is fine */

/* NULL without memory. */
struct coop_tls_conn *coop_tls_accept(struct coop_tls *tls, int fd);
void coop_tls_free(struct coop_tls_conn *conn); /* NULL is fine */

/* 0 when it is done, -EAGAIN, or another error. */
int coop_tls_handshake(struct coop_tls_conn *conn);
/* As recv() and send(): a count, 0 at the end, -EAGAIN, or another error. */
ssize_t coop_tls_read(struct coop_tls_conn *conn, void *buffer, size_t size);
ssize_t coop_tls_write(struct coop_tls_conn *conn, const void *data, size_t size);
/* Whether the last call needs the socket to be writable before it can go on. */
bool coop_tls_wants_write(const struct coop_tls_conn *conn);
/* Says goodbye, without waiting for the other side's. */
void coop_tls_end(struct coop_tls_conn *conn);

#endif
