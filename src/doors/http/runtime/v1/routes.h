/* Everything of /runtime/v1 about processes, and what of it coop does not provide. */
#ifndef COOP_HTTP_V1_ROUTES_H
#define COOP_HTTP_V1_ROUTES_H

#include "doors/http/net/route.h"

extern const struct coop_http_route coop_routes_runtime[];

#endif
