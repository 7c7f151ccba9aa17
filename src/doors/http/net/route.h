/* A row of the table of routes. A module exports an array that ends with a row without a method;
 * main/routes.c lists the arrays. */
#ifndef COOP_HTTP_ROUTE_H
#define COOP_HTTP_ROUTE_H

#include <stddef.h>

struct coop_http_exchange;

enum coop_http_body {
	COOP_BODY_NONE,   /* what comes is read and thrown away */
	COOP_BODY_JSON,   /* an object, collected before the route is called; else 400 */
	COOP_BODY_STREAM, /* to the behaviour's body() */
};

enum {
	/* Only with a WebSocket upgrade; the same path without is another row, or 400. */
	COOP_ROUTE_UPGRADE = 1,
	COOP_ROUTE_OPEN = 2,    /* without a token */
	COOP_ROUTE_CONTROL = 4, /* only with --control-plane */
	COOP_ROUTE_BELOW = 8,   /* also every path below the pattern (which ends in "/") */
};

struct coop_http_route {
	const char *method; /* "*": every method */
	/* "/runtime/v1/process/{id}/output": {…} is one whole, decoded part */
	const char *pattern;
	unsigned flags;
	enum coop_http_body body;
	/* COOP_BODY_JSON: bytes, 0 for 1 MiB; COOP_BODY_STREAM: the route's affair */
	size_t body_max;
	void (*handle)(struct coop_http_exchange *exchange);
};

#endif
