/* GET /openapi.json: the description of all that the gateway serves. What is the gateway's own is
 * written in openapi_base.json; what is below /v1/ops is made of the keeper's table (its operation
 * describe), so that it needs a token, as any question to the keeper does. */
#ifndef COOP_HTTP_OPENAPI_H
#define COOP_HTTP_OPENAPI_H

#include "doors/http/net/route.h"

extern const struct coop_http_route coop_routes_openapi[];

/* The text of openapi_base.json. */
extern const char coop_openapi_base[];

#endif
