/* The list of all routes, and finding one of them for a request. */
#ifndef COOP_HTTP_ROUTES_H
#define COOP_HTTP_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

#include "doors/http/net/route.h"

/* All rows, by number; NULL behind the last. */
const struct coop_http_route *coop_routes_at(size_t index);

/* The row for an exchange if it is one that needs no token, its params filled; else NULL.
 * `control`: the routes of the control plane are there. */
const struct coop_http_route *coop_routes_find_open(struct coop_http_exchange *exchange,
						    bool control);
/* The row for an exchange, its params filled. NULL: it has been refused (404, 405 with Allow,
 * 400). */
const struct coop_http_route *coop_routes_find(struct coop_http_exchange *exchange, bool control);

#endif
