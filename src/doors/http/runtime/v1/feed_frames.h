/* Output of processes as /runtime/v1 says it: each event a text frame of a WebSocket, `gap` where
 * some are lost, and the `exit`. */
#ifndef COOP_HTTP_V1_FEED_FRAMES_H
#define COOP_HTTP_V1_FEED_FRAMES_H

#include "doors/http/runtime/feed.h"

/* Its sinks are WebSockets. */
extern const struct coop_feed_dialect coop_v1_feed_frames;

struct coop_ws;

static inline struct coop_feed_sink *coop_v1_sink(struct coop_ws *ws)
{
	return (struct coop_feed_sink *)ws;
}

#endif
