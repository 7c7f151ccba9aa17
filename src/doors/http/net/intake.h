/* From bytes to a route: heads, who they come from, bodies. Between the connection and the
 * exchange. */
#ifndef COOP_HTTP_INTAKE_H
#define COOP_HTTP_INTAKE_H

#include <stddef.h>

struct coop_http_conn;
struct coop_http_exchange;
struct coop_http_route;

/* Take bytes of a head, of a body; return how many. */
size_t coop_intake_head(struct coop_http_conn *conn, const char *data, size_t size);
size_t coop_intake_body(struct coop_http_conn *conn, const char *data, size_t size);

/* The answer to the call `begun`: the exchange is the route's from now on, after its body where it
 * takes that whole. It may be over when this returns. */
void coop_intake_admit(struct coop_http_exchange *exchange, const struct coop_http_route *route);

/* Refuses what is no request (yet) and ends the connection. */
void coop_intake_refuse(struct coop_http_conn *conn, unsigned status, const char *code,
			const char *message);

/* Tells the route that its exchange is over, and frees it. Nothing if there is none. */
void coop_exchange_over(struct coop_http_conn *conn);

#endif
