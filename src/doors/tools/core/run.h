/* Carries out calls of tools for a door. */
#ifndef COOP_TOOLS_RUN_H
#define COOP_TOOLS_RUN_H

#include "doors/tools/core/call.h"
#include "doors/tools/core/host.h"

/* How a call ended; the outcome is also the exit code of `coop tool`. */
enum coop_tool_outcome { COOP_TOOL_OK, COOP_TOOL_FAILURE, COOP_TOOL_ERROR };

/* The caller's side. */
struct coop_tool_client {
	/* Exactly once, later, unless the call was cancelled. `result` lives until it returns; of
	 * an error it is {"code", "message", "advice", …}. */
	void (*done)(void *context, enum coop_tool_outcome outcome, json_t *result);
	/* NULL: it does not want to know. */
	void (*progress)(void *context, const char *message);
	void *context;
};

struct coop_tool_run;

/* Whether arguments are of harn's form of a tool that has one: `mode` or `argv` is there. */
bool coop_tool_is_harn(const json_t *args);

/* Begins a call. `args` (NULL: none) is not taken over; arguments are checked, so that done may
 * bring an error. NULL without memory. */
struct coop_tool_run *coop_tool_run(const struct coop_tool_host *host,
				    const struct coop_tool_setup *setup,
				    const struct coop_tool *tool, json_t *args,
				    const struct coop_tool_client *client);
/* Gives up: done is not called any more. What the call started for itself is ended. Not after
 * done. */
void coop_tool_cancel(struct coop_tool_run *run);

#endif
