/* The gateway itself: what main() has read of its options becomes the rooms, put together. */
#ifndef COOP_HTTP_GATEWAY_H
#define COOP_HTTP_GATEWAY_H

#include <stdbool.h>
#include <uv.h>

#include "doors/http/net/place.h"
#include "doors/http/users/users.h"

#define COOP_GATEWAY_LISTENERS_MAX COOP_PLACE_PORTS_MAX

struct coop_gateway;

struct coop_gateway_options {
	struct coop_http_place place;
	struct coop_callers_options users;
	int broker, certificate, key; /* descriptors; -1: not given */
	struct {
		int fd;
		bool tls;
	} listen[COOP_GATEWAY_LISTENERS_MAX];
	unsigned listen_count;
	unsigned ping_ms;
	unsigned restarts; /* gateways that were in this one's place and have ended */
	unsigned max_connections;
	bool control_plane;
	bool mcp_fixtures;
};

/* Takes everything that needs memory or descriptors from outside; nobody is served yet. NULL: why
 * has been logged. `options` must outlive it. */
struct coop_gateway *coop_gateway_new(uv_loop_t *loop, struct coop_gateway_options *options);
/* Serves until it is stopped. `held` says how it is confined, for the parent. */
void coop_gateway_serve(struct coop_gateway *gateway, const char *held);
/* Accepts no more, lets what is being answered finish, 5 s at most. */
void coop_gateway_stop(struct coop_gateway *gateway);
bool coop_gateway_stopping(const struct coop_gateway *gateway);
/* What was served has gone; its handles are closed. */
void coop_gateway_free(struct coop_gateway *gateway);

#endif
