/* GET /metrics: numbers of the keeper (its operation metrics, which it gives the user's own main
 * alone) and of this gateway, in the text format 0.0.4 of Prometheus. Where the keeper does not
 * answer there are the gateway's, and coop_keeper_up is 0. */
#ifndef COOP_HTTP_METRICS_H
#define COOP_HTTP_METRICS_H

#include "doors/http/net/route.h"

extern const struct coop_http_route coop_routes_metrics[];

#endif
