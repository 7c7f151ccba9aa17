/* What one client wants to be told, and telling it: each thing at most twice a second, several
 * changes in one word, and a client that does not read later.
 *
 * In the older era a client has one, on its session's channel. In the modern era every
 * subscriptions/listen is one, on its request's channel, and every message carries that request's
 * id. */
#ifndef COOP_MCP_SUBSCRIPTION_H
#define COOP_MCP_SUBSCRIPTION_H

#include "doors/mcp/mcp.h"
#include "doors/mcp/process_uri.h"

/* Between two words on the same thing. */
#define COOP_MCP_UPDATE_MS 500u
/* Things that one subscription may be about. */
#define COOP_MCP_NOTICES_MAX 256u

struct coop_mcp_subscription;

/* One of the two is NULL. NULL without memory. */
struct coop_mcp_subscription *coop_mcp_subscription_new(struct coop_mcp *mcp,
							struct coop_mcp_session *session,
							struct coop_mcp_request *request);
/* Tells nothing any more. NULL is fine. */
void coop_mcp_subscription_free(struct coop_mcp_subscription *subscription);

/* Adds a thing; 0 also if it was there already. -ENOSPC: there are too many, -ENOMEM; -ENOENT: no
 * such task. */
int coop_mcp_subscription_add_list(struct coop_mcp_subscription *subscription);
int coop_mcp_subscription_add_process(struct coop_mcp_subscription *subscription,
				      const struct coop_mcp_process_uri *uri);
int coop_mcp_subscription_add_task(struct coop_mcp_subscription *subscription, const char *id);
/* Takes a process's resource out again, if it is there. */
void coop_mcp_subscription_remove(struct coop_mcp_subscription *subscription, const char *uri);

/* The session's own, made if there is none. NULL without memory. */
struct coop_mcp_subscription *coop_mcp_subscription_of(struct coop_mcp *mcp,
						       struct coop_mcp_session *session);
/* The session's client has listed the resources: it is told when the list changes. */
void coop_mcp_subscription_lists(struct coop_mcp *mcp, struct coop_mcp_session *session);

/* The channel takes messages again (or there is one now): what waits is told. NULL is fine. */
void coop_mcp_subscription_room(struct coop_mcp_subscription *subscription);

/* {"io.modelcontextprotocol/subscriptionId": id} */
json_t *coop_mcp_subscription_meta(const struct coop_mcp_request *request);

#endif
