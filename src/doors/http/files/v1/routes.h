/* Routes of /runtime/v1/files and /runtime/v1/directories. */
#ifndef COOP_HTTP_V1_FILES_ROUTES_H
#define COOP_HTTP_V1_FILES_ROUTES_H

#include "doors/http/net/route.h"

extern const struct coop_http_route coop_routes_files[];

#endif
