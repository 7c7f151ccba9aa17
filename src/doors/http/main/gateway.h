/* The gateway itself: one loop, its options, what it has counted. */
#ifndef COOP_HTTP_GATEWAY_H
#define COOP_HTTP_GATEWAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "doors/http/net/forwarded.h"
#include "doors/http/net/strangers.h"

#define COOP_GATEWAY_LISTENERS_MAX 16
#define COOP_GATEWAY_NAMES_MAX 34

struct coop_broker;
struct coop_http_conn;
struct coop_failures;
struct coop_http_listener;
struct coop_tls;
struct coop_callers;

struct coop_gateway_options {
	const char *profile;   /* of every process; NULL: not said */
	const char *workspace; /* of processes of the user's own agent; NULL: not said */
	bool no_workspace;     /* processes of the user's own agent may change nothing */
	bool bound;      /* somebody said how processes are confined: nothing is wider than that */
	const char *url; /* what clients are told to use if nothing better is known; no slash */
	char public_url[COOP_ORIGIN_SIZE]; /* what they are told in any case; "": not said */
	struct coop_proxies proxies;       /* whose word on the client's side of a request counts */
	unsigned ping_ms;  /* silent WebSockets are sent a ping so often; 0: never */
	unsigned restarts; /* gateways that were in this one's place and have ended */
	bool control_plane;
	bool mcp_fixtures; /* builds for tests: /mcp has what the conformance suite asks for */
	const char *names[COOP_GATEWAY_NAMES_MAX];   /* further names in Host, NULL-ended */
	const char *origins[COOP_GATEWAY_NAMES_MAX]; /* further origins, NULL-ended */
	int ports[COOP_GATEWAY_LISTENERS_MAX];       /* of the listeners that have one */
	unsigned port_count;
	unsigned max_connections;
	unsigned max_per_agent; /* of those, of one agent's tokens with all below it */
	unsigned max_of_agents; /* of all agents but main of the keeper's own user */
};

/* Since the start. For /metrics. */
struct coop_gateway_counts {
	uint64_t requests, refused, upgrades;
	uint64_t bytes_sent;    /* to clients, of all kinds */
	uint64_t output_bytes;  /* of processes, before encoding, counted for each subscriber */
	uint64_t gaps;          /* told to subscribers */
	uint64_t auth_failures; /* tokens that were not valid */
	uint64_t crowded_out;   /* connections without a token that had to make room */
	unsigned connections, websockets, subscribers, feeds; /* now */
};

struct coop_gateway {
	uv_loop_t *loop;
	struct coop_gateway_options options;
	struct coop_gateway_counts counts;
	bool keeper_gone; /* the last attempt to reach it failed */
	bool stopping;    /* answers carry Connection: close, nothing new is accepted */

	struct coop_http_listener *listeners[COOP_GATEWAY_LISTENERS_MAX];
	unsigned listener_count;
	struct coop_http_conn *conns; /* all of them, newest first */
	struct coop_strangers strangers;
	struct coop_broker *broker;
	struct coop_callers *users;
	struct coop_failures *failures;
	struct coop_tls *tls; /* NULL: none */
	uv_timer_t drain;     /* runs while it stops */
	bool settled;
};

/* Accepts no more, lets what is being answered finish, 5 s at most. */
void coop_gateway_stop(struct coop_gateway *gateway);
/* Ends the loop if it is stopping and the last connection has gone. */
void coop_gateway_settle(struct coop_gateway *gateway);

#endif
