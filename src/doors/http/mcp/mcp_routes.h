/* /mcp: the Model Context Protocol over HTTP, both eras on one path.
 *
 * Modern: POST only, each request by itself, the headers repeat what the message says. Legacy:
 * `initialize` opens a session, whose id further requests bring; GET follows what belongs to no
 * request, DELETE ends it. */
#ifndef COOP_HTTP_MCP_ROUTES_H
#define COOP_HTTP_MCP_ROUTES_H

#include "doors/http/net/route.h"

extern const struct coop_http_route coop_routes_mcp[];

#endif
