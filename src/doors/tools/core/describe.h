/* Tools as MCP lists them. Every byte is paid for by every conversation, so that only what a model
 * needs is written. */
#ifndef COOP_TOOLS_DESCRIBE_H
#define COOP_TOOLS_DESCRIBE_H

#include "base/json/jsonw.h"
#include "doors/tools/core/tool.h"

/* {"name", "title", "description", "inputSchema", "outputSchema", "annotations"} as an element of
 * an array, as those who are offered `sets` see it. */
void coop_tool_describe(struct coop_jsonw *w, const struct coop_tool *tool, unsigned sets);

#endif
