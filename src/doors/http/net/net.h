/* What all connections of clients have in common: where they come to, how many there may be, what
 * is counted of them, and whom they call when a request comes. */
#ifndef COOP_HTTP_NET_H
#define COOP_HTTP_NET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <uv.h>

#include "base/later.h"
#include "base/list.h"

struct coop_callers;
struct coop_gateway;
struct coop_http_exchange;
struct coop_http_net;
struct coop_http_place;
struct coop_tls;
struct coop_user;

/* What connections ask of the rooms above, which main/ fills in. */
struct coop_http_calls {
	/* A whole head has come. It is refused, or coop_intake_admit() is called with its route,
	 * now or later. */
	void (*begun)(struct coop_http_exchange *exchange);
	/* The exchange is over, and its route knows: `user` and `waiter` are let go of. */
	void (*over)(struct coop_http_exchange *exchange);
	/* A connection is not the user's any more, that coop_http_conn_enter() made it. */
	void (*left)(struct coop_user *user);
	/* A connection has gone, and its memory with it. */
	void (*gone)(struct coop_http_net *net);
};

/* Since the start. For /metrics. */
struct coop_http_counts {
	uint64_t requests, refused, upgrades;
	uint64_t bytes_sent;    /* to clients, of all kinds */
	uint64_t output_bytes;  /* of processes, before encoding, counted for each subscriber */
	uint64_t gaps;          /* told to subscribers */
	uint64_t auth_failures; /* tokens that were not valid */
	uint64_t crowded_out;   /* connections without a token that had to make room */
	unsigned restarts;      /* gateways that were in this one's place and have ended */
	unsigned connections, websockets, subscribers, feeds; /* now */
};

/* It lives as long as the program. What is opaque here is for the rooms that define it. */
struct coop_http_net {
	uv_loop_t *loop;
	struct coop_laters laters; /* they run before the loop sleeps */
	const struct coop_http_calls *calls;
	struct coop_gateway *gateway; /* whose calls these are */
	struct coop_callers *users;
	struct coop_tls *tls; /* NULL: none */
	struct coop_http_place *place;
	unsigned ping_ms; /* silent WebSockets are sent a ping so often; 0: never */
	unsigned max_connections;
	bool mcp_fixtures; /* builds for tests: /mcp has what the conformance suite asks for */
	bool stopping;     /* answers carry Connection: close, nothing new is accepted */
	struct coop_http_counts counts;
	struct coop_link conns;     /* all of them, newest first */
	struct coop_link strangers; /* those that have shown no token, in order */
};

/* For uv_close(): frees what the handle's data points to, which mostly is what it is in. */
static inline void coop_http_free_owner(uv_handle_t *handle)
{
	free(handle->data);
}

#endif
