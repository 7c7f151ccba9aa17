/* What a user has of tools and MCP: one server for all its connections, and the way from tools to
 * the keeper, which acts for the user. */
#ifndef COOP_HTTP_MCP_USER_H
#define COOP_HTTP_MCP_USER_H

#include <stdbool.h>
#include <uv.h>

#include "base/list.h"
#include "doors/http/net/exchange.h"
#include "doors/http/users/user.h"
#include "doors/mcp/mcp.h"
#include "doors/tools/core/call.h"
#include "doors/tools/core/host.h"

/* Every call of a tool answers before: many clients stop to wait after a minute. */
#define COOP_MCP_WAIT_MS 50000
/* A client of the legacy era that is silent for so long has gone, and so are tasks that nobody asks
 * for. */
#define COOP_MCP_IDLE_MS 3600000u

struct coop_mcp_user {
	struct coop_user_extra extra; /* first */
	struct coop_user *user;       /* it goes with it */
	struct coop_http_net *net;
	struct coop_tool_host host;
	struct coop_tool_setup setup;
	struct coop_mcp mcp;
	struct coop_link exchanges; /* all that are open, newest first */
	struct coop_link clients;   /* of the legacy era, newest first */
	unsigned client_count;
	unsigned tools;   /* calls of /v1/tools that are open */
	bool holds_user;  /* its tasks must not go with a user that is idle */
	uint64_t used_at; /* by the loop's clock */
	uv_timer_t sweep; /* runs while something may expire */
};

/* That of the exchange's user. NULL without memory: the exchange has been refused. */
struct coop_mcp_user *coop_mcp_user_get(struct coop_http_exchange *exchange);
/* A message has been taken: minds what came of it. */
void coop_mcp_user_used(struct coop_mcp_user *owner);

#endif
