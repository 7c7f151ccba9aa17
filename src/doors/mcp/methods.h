/* The methods' rows, by file; server.c lists them. */
#ifndef COOP_MCP_METHODS_H
#define COOP_MCP_METHODS_H

#include "doors/mcp/mcp.h"

/* Each ends with a row without a name. */
extern const struct coop_mcp_method
	coop_mcp_methods_base[]; /* initialize, ping, server/discover (server.c) */
extern const struct coop_mcp_method coop_mcp_methods_tools[]; /* tools/list, tools/call (tools.c) */
extern const struct coop_mcp_method
	coop_mcp_methods_resources[]; /* resources/list, /read, /templates/list (resources.c) */
extern const struct coop_mcp_method
	/* resources/subscribe, /unsubscribe, subscriptions/listen (subscriptions.c) */
	coop_mcp_methods_subscriptions[];
extern const struct coop_mcp_method
	coop_mcp_methods_tasks[]; /* tasks/get, /update, /cancel (tasks.c) */

/* subscriptions.c: called by server.c. */
void coop_mcp_subscriptions_stop(struct coop_mcp *mcp);               /* coop_mcp_stop() */
void coop_mcp_subscriptions_forget(struct coop_mcp_session *session); /* a legacy client has gone */
void coop_mcp_watch_free(struct coop_mcp_watch *watch);               /* NULL is fine */
/* tasks.c: whether this tools/call is to become a task (modern, declared, a waiting run_command);
 * it is then answered by tasks.c. */
bool coop_mcp_tasks_take(struct coop_mcp_request *request);
void coop_mcp_tasks_free(struct coop_mcp_tasks *tasks); /* NULL is fine */

#endif
