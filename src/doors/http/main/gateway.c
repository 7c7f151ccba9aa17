#include "doors/http/main/gateway.h"

#include "doors/http/mcp/mcp_user.h"
#include "doors/http/net/conn.h"
#include "doors/http/net/exchange.h"
#include "doors/http/net/listener.h"
#include "doors/http/net/tls.h"
#include "doors/http/net/ws_private.h"
#include "doors/http/users/broker.h"
#include "doors/http/users/user_private.h"

#define DRAIN_MS 5000u

static void drop_all(struct coop_gateway *gateway)
{
	while (gateway->conns)
		coop_http_conn_drop(gateway->conns);
}

static void on_drained(uv_timer_t *timer)
{
	struct coop_gateway *gateway = timer->data;

	drop_all(gateway);
	coop_gateway_settle(gateway);
}

void coop_gateway_settle(struct coop_gateway *gateway)
{
	if (!gateway->stopping || gateway->conns || gateway->settled)
		return;
	gateway->settled = true;
	coop_users_close(gateway->users);
	coop_broker_close(gateway->broker);
	uv_close((uv_handle_t *)&gateway->drain, NULL);
	uv_stop(gateway->loop);
}

/* What is idle goes, what streams is ended in order, the rest may finish. */
static void ask_to_go(struct coop_http_conn *conn)
{
	if (conn->ws)
		coop_ws_stop(conn->ws);
	else if (conn->exchange && conn->exchange->begun && conn->exchange->chunked)
		coop_http_end(conn->exchange);
	else if (!conn->exchange && !conn->head && !conn->out.bytes)
		coop_http_conn_drop(conn);
}

void coop_gateway_stop(struct coop_gateway *gateway)
{
	if (gateway->stopping)
		return;
	gateway->stopping = true;
	for (unsigned i = 0; i < gateway->listener_count; i++)
		coop_http_listener_close(gateway->listeners[i]);
	gateway->listener_count = 0;
	coop_mcp_users_stop(gateway);
	for (struct coop_http_conn *conn = gateway->conns, *next; conn; conn = next) {
		next = conn->next;
		ask_to_go(conn);
	}
	(void)uv_timer_init(gateway->loop, &gateway->drain);
	gateway->drain.data = gateway;
	(void)uv_timer_start(&gateway->drain, on_drained, DRAIN_MS, 0);
	coop_gateway_settle(gateway);
}
