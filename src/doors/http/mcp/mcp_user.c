#include "doors/http/mcp/mcp_user.h"

#include <stdlib.h>

#include "base/mem.h"
#include "doors/http/main/gateway.h"
#include "doors/http/mcp/mcp_exchange.h"
#include "doors/http/mcp/mcp_session.h"
#include "doors/http/net/conn.h"
#include "doors/tools/core/tool.h"

#define SWEEP_MS 60000u

static void *call_keeper(void *context, const char *op, json_t *args, const void *data, size_t size,
			 const struct coop_handler *handler)
{
	return coop_user_call(context, op, args, data, size, handler);
}

static void drop_call(void *call)
{
	coop_user_drop(call);
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

/* The user is gone: whoever still has something open is not told any more. */
static void free_owner(void *value)
{
	struct coop_mcp_user *owner = value;

	coop_mcp_clients_clear(owner);
	coop_mcp_clear(&owner->mcp);
	coop_mcp_exchanges_clear(owner);
	uv_close((uv_handle_t *)&owner->sweep, on_closed);
}

struct coop_mcp_user *coop_mcp_user_get(struct coop_http_exchange *exchange)
{
	struct coop_mcp_user *owner = coop_user_get(exchange->user, COOP_USER_MCP);
	const struct coop_gateway_options *options = &exchange->gateway->options;

	if (owner)
		return owner;
	owner = coop_mem_zalloc(sizeof *owner);
	if (!owner) {
		coop_http_refuse(exchange, 503, "sandbox_overloaded", "out of memory");
		return NULL;
	}
	owner->user = exchange->user;
	owner->gateway = exchange->gateway;
	owner->host = (struct coop_tool_host){
		.loop = exchange->gateway->loop,
		.context = owner->user,
		.call = call_keeper,
		.drop = drop_call,
	};
	owner->setup.profile = options->profile;
	/* The workspace is for the user's own processes: other agents have theirs. */
	owner->setup.workspace = coop_user_is_own(owner->user) ? options->workspace : NULL;
	owner->setup.max_wait_ms = COOP_MCP_WAIT_MS;
	coop_mcp_init(&owner->mcp, &owner->host, &owner->setup, COOP_TOOLS_DEFAULT);
	owner->mcp.fixtures = options->mcp_fixtures;
	(void)uv_timer_init(owner->gateway->loop, &owner->sweep);
	owner->sweep.data = owner;
	coop_user_set(owner->user, COOP_USER_MCP, owner, free_owner);
	return owner;
}

static void on_sweep(uv_timer_t *timer)
{
	struct coop_mcp_user *owner = timer->data;
	uint64_t now = uv_now(owner->gateway->loop);

	coop_mcp_clients_expire(owner, now);
	bool release = owner->holds_user && now - owner->used_at >= COOP_MCP_IDLE_MS;
	if (release)
		owner->holds_user = false;
	if (!owner->holds_user && !owner->clients)
		(void)uv_timer_stop(&owner->sweep);
	if (release)
		coop_user_unref(owner->user);
}

void coop_mcp_user_used(struct coop_mcp_user *owner)
{
	owner->used_at = uv_now(owner->gateway->loop);
	if (owner->mcp.tasks && !owner->holds_user) {
		owner->holds_user = true;
		(void)coop_user_ref(owner->user);
	}
	if ((owner->holds_user || owner->clients) && !uv_is_active((uv_handle_t *)&owner->sweep))
		(void)uv_timer_start(&owner->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
}

/* One that has subscribers and has not been told; they have connections. */
static struct coop_mcp_user *find_served(const struct coop_gateway *gateway)
{
	for (const struct coop_http_conn *conn = gateway->conns; conn; conn = conn->next) {
		const struct coop_http_exchange *exchange = conn->exchange;
		struct coop_mcp_user *owner = exchange && exchange->user
						      ? coop_user_get(exchange->user, COOP_USER_MCP)
						      : NULL;
		if (owner && !owner->stopped)
			return owner;
	}
	return NULL;
}

void coop_mcp_users_stop(struct coop_gateway *gateway)
{
	struct coop_mcp_user *owner;

	/* Each makes connections go: the list is looked at anew. */
	while ((owner = find_served(gateway))) {
		owner->stopped = true;
		coop_mcp_stop(&owner->mcp);
	}
}
