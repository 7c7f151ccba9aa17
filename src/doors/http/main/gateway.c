#include "doors/http/main/gateway.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/io/log.h"
#include "base/later.h"
#include "base/list.h"
#include "base/mem.h"
#include "doors/http/main/routes.h"
#include "doors/http/net/conns.h"
#include "doors/http/net/exchange.h"
#include "doors/http/net/intake.h"
#include "doors/http/net/listener.h"
#include "doors/http/net/net.h"
#include "doors/http/net/tls.h"
#include "doors/http/users/access.h"
#include "doors/http/users/broker.h"
#include "doors/http/users/user.h"

#define DRAIN_MS 5000u

struct coop_gateway {
	struct coop_http_net net;
	struct coop_http_listener *listeners[COOP_GATEWAY_LISTENERS_MAX];
	unsigned listener_count;
	struct coop_broker *broker;
	uv_prepare_t turn_end;
	uv_idle_t more;   /* keeps the loop from sleeping */
	uv_timer_t drain; /* runs while it stops */
	bool control_plane;
	bool settled;
};

/* Ends the loop if it is stopping and the last connection has gone. */
static void settle(struct coop_gateway *gateway)
{
	if (!gateway->net.stopping || !coop_list_empty(&gateway->net.conns) || gateway->settled)
		return;
	gateway->settled = true;
	coop_users_close(gateway->net.users);
	coop_broker_close(gateway->broker);
	uv_close((uv_handle_t *)&gateway->turn_end, NULL);
	uv_close((uv_handle_t *)&gateway->more, NULL);
	uv_close((uv_handle_t *)&gateway->drain, NULL);
	uv_stop(gateway->net.loop);
}

static void on_more(uv_idle_t *idle)
{
}

/* What is due at the end of the loop's turn is done. What it has caused is due in the next one,
 * before which the loop must not sleep. */
static void on_turn_end(uv_prepare_t *prepare)
{
	struct coop_gateway *gateway = prepare->data;
	bool more = coop_laters_run(&gateway->net.laters);

	if (gateway->settled)
		return;
	if (more)
		(void)uv_idle_start(&gateway->more, on_more);
	else
		(void)uv_idle_stop(&gateway->more);
}

static void on_drained(uv_timer_t *timer)
{
	struct coop_gateway *gateway = timer->data;

	coop_http_conns_drop(&gateway->net);
	settle(gateway);
}

void coop_gateway_stop(struct coop_gateway *gateway)
{
	if (gateway->net.stopping)
		return;
	gateway->net.stopping = true;
	for (unsigned i = 0; i < gateway->listener_count; i++)
		coop_http_listener_close(gateway->listeners[i]);
	gateway->listener_count = 0;
	coop_users_stop(gateway->net.users);
	coop_http_conns_stop(&gateway->net);
	(void)uv_timer_init(gateway->net.loop, &gateway->drain);
	gateway->drain.data = gateway;
	(void)uv_timer_start(&gateway->drain, on_drained, DRAIN_MS, 0);
	settle(gateway);
}

bool coop_gateway_stopping(const struct coop_gateway *gateway)
{
	return gateway->net.stopping;
}

/* What the keeper thinks of the token is known: 0, or why not. */
static void on_checked(struct coop_http_exchange *exchange, struct coop_user *user, int status)
{
	if (status < 0) {
		coop_access_refuse(exchange, status);
		return;
	}
	if (coop_users_enter(user, exchange) < 0) {
		coop_http_refuse(exchange, 429, "quota_exceeded",
				 "this token's agent has as many connections as it may");
		return;
	}
	const struct coop_http_route *route =
		coop_routes_find(exchange, exchange->net->gateway->control_plane);
	if (route)
		coop_intake_admit(exchange, route);
}

static void on_begun(struct coop_http_exchange *exchange)
{
	if (!coop_place_check(exchange)) /* it has been refused */
		return;
	const struct coop_http_route *route =
		coop_routes_find_open(exchange, exchange->net->gateway->control_plane);
	if (route)
		coop_intake_admit(exchange, route);
	else
		coop_access_check(exchange, on_checked);
}

static void on_over(struct coop_http_exchange *exchange)
{
	coop_users_wait_stop(exchange);
	coop_user_unref(exchange->user);
}

static void on_gone(struct coop_http_net *net)
{
	settle(net->gateway);
}

static const struct coop_http_calls calls = {
	.begun = on_begun,
	.over = on_over,
	.left = coop_user_unref,
	.gone = on_gone,
};

static void on_parent_gone(void *context)
{
	coop_gateway_stop(context);
}

static bool load_tls(struct coop_http_net *net, const struct coop_gateway_options *options)
{
	char why[256];

	if (options->certificate <= 0)
		return true;
	net->tls = coop_tls_load(options->certificate, options->key, why, sizeof why);
	(void)close(options->certificate);
	(void)close(options->key);
	if (!net->tls)
		coop_log(COOP_LOG_ERROR, "TLS: %s", why);
	return net->tls != NULL;
}

static bool listen_all(struct coop_gateway *gateway, const struct coop_gateway_options *options)
{
	for (unsigned i = 0; i < options->listen_count; i++) {
		struct coop_http_listener *listener = coop_http_listener_new(
			&gateway->net, options->listen[i].fd, options->listen[i].tls);
		if (!listener || (options->listen[i].tls && !gateway->net.tls)) {
			coop_log(COOP_LOG_ERROR, "descriptor %d cannot be listened to",
				 options->listen[i].fd);
			return false;
		}
		gateway->listeners[gateway->listener_count++] = listener;
	}
	return true;
}

struct coop_gateway *coop_gateway_new(uv_loop_t *loop, struct coop_gateway_options *options)
{
	struct coop_gateway *gateway = coop_mem_zalloc(sizeof *gateway);

	if (!gateway)
		return NULL;
	gateway->control_plane = options->control_plane;
	gateway->net = (struct coop_http_net){
		.loop = loop,
		.calls = &calls,
		.gateway = gateway,
		.place = &options->place,
		.ping_ms = options->ping_ms,
		.max_connections = options->max_connections,
		.mcp_fixtures = options->mcp_fixtures,
		.counts.restarts = options->restarts,
	};
	(void)uv_prepare_init(loop, &gateway->turn_end);
	(void)uv_idle_init(loop, &gateway->more);
	gateway->turn_end.data = gateway;
	(void)uv_prepare_start(&gateway->turn_end, on_turn_end);
	coop_laters_init(&gateway->net.laters);
	coop_list_init(&gateway->net.conns);
	coop_list_init(&gateway->net.strangers);
	gateway->broker = coop_broker_new(loop, options->broker, on_parent_gone, gateway);
	if (gateway->broker)
		gateway->net.users =
			coop_users_new(&gateway->net, gateway->broker, &options->users);
	if (gateway->net.users && load_tls(&gateway->net, options) && listen_all(gateway, options))
		return gateway;
	/* Nobody has been served, and the program ends: there is nothing to put in order. */
	return NULL;
}

void coop_gateway_serve(struct coop_gateway *gateway, const char *held)
{
	for (unsigned i = 0; i < gateway->listener_count; i++)
		coop_http_listener_start(gateway->listeners[i]);
	coop_broker_ready(gateway->broker, held);
	(void)uv_run(gateway->net.loop, UV_RUN_DEFAULT);
}

void coop_gateway_free(struct coop_gateway *gateway)
{
	coop_users_free(gateway->net.users);
	coop_tls_unload(gateway->net.tls);
	free(gateway);
}
