/* A WebSocket as its connection drives it. */
#ifndef COOP_HTTP_WS_PRIVATE_H
#define COOP_HTTP_WS_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

#include "doors/http/net/ws.h"

struct coop_http_conn;

/* NULL without memory. */
struct coop_ws *coop_ws_new(struct coop_http_conn *conn, const struct coop_ws_behaviour *behaviour,
			    void *context);
void coop_ws_free(struct coop_ws *ws); /* NULL is fine */
/* Queues the answer to the upgrade. */
void coop_ws_accept(struct coop_ws *ws, const char *key);
/* Sends it, and takes the connection over. */
void coop_ws_begin(struct coop_ws *ws);

/* Takes bytes of frames, as many as it may. */
size_t coop_ws_feed(struct coop_http_conn *conn, const char *data, size_t size);
/* No more bytes for now: sends what they have caused. */
void coop_ws_fed(struct coop_http_conn *conn);
void coop_ws_writable(struct coop_http_conn *conn);
bool coop_ws_closing(const struct coop_http_conn *conn);
/* The connection's deadline: false if it has nothing to do with closing. */
bool coop_ws_expired(struct coop_http_conn *conn);
/* The gateway stops: 1012. */
void coop_ws_stop(struct coop_ws *ws);
/* Tells its owner the end. Nothing if there is no WebSocket. */
void coop_ws_over(struct coop_http_conn *conn);

#endif
