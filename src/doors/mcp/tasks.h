/* Calls of tools that go on behind their answer: the extension io.modelcontextprotocol/tasks. */
#ifndef COOP_MCP_TASKS_H
#define COOP_MCP_TASKS_H

#include "doors/mcp/mcp.h"
#include "doors/mcp/watch.h"

/* Tasks of one server, those that have ended included. With that many running a call is answered as
 * any other; an ended one gives way earlier only if its time is over. */
#define COOP_MCP_TASKS_MAX 64u
/* What a client is asked to wait between two looks. */
#define COOP_MCP_TASKS_POLL_MS 1000
/* How long a task can be looked at, beyond the time that it may run. */
#define COOP_MCP_TASKS_TTL_MS 600000

/* Begins to tell of the task's changes: -ENOENT if there is none. One that has ended is told of at
 * once. */
int coop_mcp_tasks_watch(struct coop_mcp *mcp, const char *id, struct coop_mcp_interest *interest);
/* The whole task as tasks/get shows it; NULL: there is none (any more), or no memory. */
json_t *coop_mcp_tasks_show(const struct coop_mcp *mcp, const char *id);

#endif
