/* POST /v1/tools/NAME: the tools that models use, for programs. The body is the tool's arguments,
 * the answer its result.
 *
 * The header Coop-Outcome says how it went: `ok`, `failure` (it was carried out, and the answer is
 * no; 200 as well) or `error`, whose status follows from its code and whose body is {"code",
 * "message", "advice", "details"?}. A client that goes has cancelled the call. */
#ifndef COOP_HTTP_TOOLS_ROUTE_H
#define COOP_HTTP_TOOLS_ROUTE_H

#include "doors/http/net/route.h"

/* As of a message of MCP. */
#define COOP_TOOLS_BODY_MAX (16u << 20)
/* Calls that a token may have open at a time; one more is refused (429). */
#define COOP_TOOLS_OPEN_MAX 512u

extern const struct coop_http_route coop_routes_tools[];

#endif
