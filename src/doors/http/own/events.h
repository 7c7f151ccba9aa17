/* GET /v1/events: what happens to processes, as server-sent events. Query: agent, session, replay
 * as of the operation follow_events.
 *
 * Each event is `event: NAME` and `data: JSON`. They have no ids, as they cannot be asked for
 * again: a client that comes back looks at the replay, or at what there is. A client that does not
 * read is told how many it has missed (`gap`) when it reads again. */
#ifndef COOP_HTTP_EVENTS_H
#define COOP_HTTP_EVENTS_H

#include "doors/http/net/route.h"

/* Bytes that may wait for one client; what comes then is dropped and counted. */
#define COOP_EVENTS_PENDING_MAX (256u << 10)
/* A silent stream says so that often, as connections that are silent for long are cut on the
 * way. */
#define COOP_EVENTS_ALIVE_MS 15000u

extern const struct coop_http_route coop_routes_events[];

#endif
