#include "doors/http/own/health.h"

#include <stdio.h>

#include "doors/http/net/exchange.h"
#include "doors/http/net/net.h"
#include "doors/http/users/users.h"

static void tell(struct coop_http_exchange *exchange)
{
	const bool stopping = exchange->net->stopping;
	const bool keeper_gone = coop_users_keeper_gone(exchange->net->users);
	const char *status = stopping ? "stopping" : keeper_gone ? "keeper_unreachable" : "ok";
	char json[64];

	int size = snprintf(json, sizeof json, "{\"status\":\"%s\"}", status);
	coop_http_answer_json(exchange, stopping || keeper_gone ? 503 : 200, json, (size_t)size);
}

const struct coop_http_route coop_routes_health[] = {
	{"GET", "/healthz", COOP_ROUTE_OPEN, COOP_BODY_NONE, 0, tell},
	{0},
};
