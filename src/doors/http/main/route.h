/* The table of routes. A module exports an array that ends with a row without a method; route.c
 * lists the arrays. */
#ifndef COOP_HTTP_ROUTE_H
#define COOP_HTTP_ROUTE_H

#include <stddef.h>

#include "doors/http/net/exchange.h"

enum coop_http_body {
	COOP_BODY_NONE,   /* what comes is read and thrown away */
	COOP_BODY_JSON,   /* an object, collected before the route is called; else 400 */
	COOP_BODY_STREAM, /* to the behaviour's body() */
};

enum {
	COOP_ROUTE_UPGRADE =
		1, /* only with a WebSocket upgrade; the same path without is another row, or 400 */
	COOP_ROUTE_OPEN = 2,    /* without a token */
	COOP_ROUTE_CONTROL = 4, /* only with --control-plane */
	COOP_ROUTE_BELOW = 8,   /* also every path below the pattern (which ends in "/") */
};

struct coop_http_route {
	const char *method; /* "*": every method */
	const char *pattern; /* "/runtime/v1/process/{id}/output": {…} is one whole, decoded part */
	unsigned flags;
	enum coop_http_body body;
	/* COOP_BODY_JSON: bytes, 0 for 1 MiB; COOP_BODY_STREAM: the route's affair */
	size_t body_max;
	void (*handle)(struct coop_http_exchange *exchange);
};

/* The row for an exchange if it is one that needs no token, its params filled; else NULL. */
const struct coop_http_route *coop_route_open(struct coop_http_exchange *exchange);

/* All rows, by number; NULL behind the last. */
const struct coop_http_route *coop_route_at(size_t index);

/* The row for an exchange, its params filled. NULL: it has been refused (404, 405 with Allow,
 * 400). */
const struct coop_http_route *coop_route_find(struct coop_http_exchange *exchange);

#endif
