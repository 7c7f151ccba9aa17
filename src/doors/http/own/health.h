/* GET /healthz, for anybody: 200 {"status": "ok"} while the gateway serves and reached the keeper
 * when it last asked for a connection; else 503 with "stopping" or "keeper_unreachable". It asks
 * nothing itself. */
#ifndef COOP_HTTP_HEALTH_H
#define COOP_HTTP_HEALTH_H

#include "doors/http/net/route.h"

extern const struct coop_http_route coop_routes_health[];

#endif
