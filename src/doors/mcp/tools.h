/* Results of tools as MCP has them. */
#ifndef COOP_MCP_TOOLS_H
#define COOP_MCP_TOOLS_H

#include "doors/mcp/mcp.h"
#include "doors/tools/core/run.h"

/* A CallToolResult: content, structuredContent, isError. NULL without memory. `result` is not taken
 * over. */
json_t *coop_mcp_tool_result(enum coop_tool_outcome outcome, json_t *result);

#endif
