#include "doors/http/mcp/mcp_user.h"

#include <stdlib.h>

#include "base/mem.h"
#include "doors/http/mcp/mcp_exchange.h"
#include "doors/http/mcp/mcp_session.h"
#include "doors/http/net/net.h"
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

/* The user is gone: whoever still has something open is not told any more. */
static void release(struct coop_user_extra *extra)
{
	struct coop_mcp_user *owner = (struct coop_mcp_user *)extra;

	coop_mcp_clients_clear(owner);
	coop_mcp_clear(&owner->mcp);
	coop_mcp_exchanges_clear(owner);
	uv_close((uv_handle_t *)&owner->sweep, coop_http_free_owner);
}

/* The gateway leaves: subscribers are told. */
static void stop(struct coop_user_extra *extra)
{
	coop_mcp_stop(&((struct coop_mcp_user *)extra)->mcp);
}

static const struct coop_user_kind kind = {.release = release, .stop = stop};

struct coop_mcp_user *coop_mcp_user_get(struct coop_http_exchange *exchange)
{
	struct coop_mcp_user *owner =
		(struct coop_mcp_user *)coop_user_extra(exchange->user, &kind);
	const struct coop_door_ceiling ceiling = coop_user_ceiling(exchange->user);

	if (owner)
		return owner;
	owner = coop_mem_zalloc(sizeof *owner);
	if (!owner) {
		coop_http_refuse(exchange, 503, "sandbox_overloaded", "out of memory");
		return NULL;
	}
	owner->user = exchange->user;
	owner->net = exchange->net;
	coop_list_init(&owner->exchanges);
	coop_list_init(&owner->clients);
	owner->host = (struct coop_tool_host){
		.loop = owner->net->loop,
		.context = owner->user,
		.call = call_keeper,
		.drop = drop_call,
	};
	owner->setup.profile = ceiling.profile;
	owner->setup.workspace = ceiling.workspace;
	owner->setup.max_wait_ms = COOP_MCP_WAIT_MS;
	coop_mcp_init(&owner->mcp, &owner->host, &owner->setup, COOP_TOOLS_DEFAULT);
	owner->mcp.fixtures = exchange->net->mcp_fixtures;
	(void)uv_timer_init(owner->net->loop, &owner->sweep);
	owner->sweep.data = owner;
	coop_user_hang(owner->user, &kind, &owner->extra);
	return owner;
}

static void on_sweep(uv_timer_t *timer)
{
	struct coop_mcp_user *owner = timer->data;
	uint64_t now = uv_now(owner->net->loop);

	coop_mcp_clients_expire(owner, now);
	bool release = owner->holds_user && now - owner->used_at >= COOP_MCP_IDLE_MS;
	if (release)
		owner->holds_user = false;
	if (!owner->holds_user && coop_list_empty(&owner->clients))
		(void)uv_timer_stop(&owner->sweep);
	if (release)
		coop_user_unref(owner->user);
}

void coop_mcp_user_used(struct coop_mcp_user *owner)
{
	owner->used_at = uv_now(owner->net->loop);
	if (owner->mcp.tasks && !owner->holds_user) {
		owner->holds_user = true;
		(void)coop_user_ref(owner->user);
	}
	if ((owner->holds_user || !coop_list_empty(&owner->clients)) &&
	    !uv_is_active((uv_handle_t *)&owner->sweep))
		(void)uv_timer_start(&owner->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
}
