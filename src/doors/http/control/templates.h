/* What SDKs look up beside sandboxes: templates, of which there is one, and volumes and
 * snapshots, of which there are none. Whatever would make or change one is refused as not
 * provided. */
#ifndef COOP_HTTP_TEMPLATES_H
#define COOP_HTTP_TEMPLATES_H

#include "doors/http/net/route.h"

extern const struct coop_http_route coop_routes_templates[];

#endif
