/* Results of tools as MCP has them. */
#ifndef COOP_MCP_TOOLS_H
#define COOP_MCP_TOOLS_H

#include "doors/mcp/mcp.h"
#include "doors/tools/core/run.h"

/* The tool that a tools/call means: listed by this server, with arguments that are an object. NULL:
 * the request has been answered with an error. */
const struct coop_tool *coop_mcp_tool_of(struct coop_mcp_request *request);

/* A CallToolResult: content, structuredContent, isError. NULL without memory. `result` is not taken
 * over. */
json_t *coop_mcp_tool_result(enum coop_tool_outcome outcome, json_t *result);

#endif
