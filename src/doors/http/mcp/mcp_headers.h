/* What the headers of a POST to /mcp must say. */
#ifndef COOP_HTTP_MCP_HEADERS_H
#define COOP_HTTP_MCP_HEADERS_H

#include <jansson.h>
#include <stdbool.h>

#include "doors/http/net/exchange.h"

#define COOP_MCP_META_VERSION "io.modelcontextprotocol/protocolVersion"

/* Whether Accept allows a type ("text/event-stream"); without that header everything is allowed. */
bool coop_mcp_accepts(const struct coop_http_exchange *exchange, const char *type);
/* Whether the body is said to be JSON. */
bool coop_mcp_is_json(const struct coop_http_exchange *exchange);

/* The version that a message of the modern era carries, which should be a string; NULL: it has
 * none. */
const json_t *coop_mcp_meta_version(const json_t *message);
/* Compares headers with a message of the modern era. NULL: they agree; else what does not. */
const char *coop_mcp_header_fault(const struct coop_http_exchange *exchange, const json_t *message);

#endif
