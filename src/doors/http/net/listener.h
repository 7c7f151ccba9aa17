/* A socket that clients come to. It was opened by the parent and outlives this program. */
#ifndef COOP_HTTP_LISTENER_H
#define COOP_HTTP_LISTENER_H

#include <stdbool.h>

struct coop_http_listener;
struct coop_http_net;

/* Notes its port for Host. NULL: without memory, or no listening socket. */
struct coop_http_listener *coop_http_listener_new(struct coop_http_net *net, int fd, bool tls);
/* Begins to accept. */
void coop_http_listener_start(struct coop_http_listener *listener);
/* Accepts no more; freed in a later turn of the loop. The socket itself stays open elsewhere. */
void coop_http_listener_close(struct coop_http_listener *listener);

#endif
