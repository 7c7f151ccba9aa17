/* Requests as the core's files see them. */
#ifndef COOP_MCP_REQUEST_H
#define COOP_MCP_REQUEST_H

#include "doors/mcp/mcp.h"

/* Forgets it; nothing is sent, and `cancel` is not called. */
void coop_mcp_request_free(struct coop_mcp_request *request);

/* An error for a message that became no request; `id` (may be NULL) and `data` as of
 * coop_mcp_error(). */
void coop_mcp_refuse_id(struct coop_mcp_channel *channel, const json_t *id, enum coop_mcp_code code,
			json_t *data, const char *message);

/* One message of a batch, or one that came alone. */
unsigned coop_mcp_take_one(struct coop_mcp *mcp, struct coop_mcp_session *session,
			   struct coop_mcp_channel *channel, json_t *message);
/* All of them; their answers come as one array. */
unsigned coop_mcp_take_batch(struct coop_mcp *mcp, struct coop_mcp_session *session,
			     struct coop_mcp_channel *channel, json_t *messages);

/* The string; NULL: it is none, or one with a NUL inside, which would mean another than it says. */
const char *coop_mcp_plain(const json_t *value);

#endif
