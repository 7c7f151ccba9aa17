/* The harn form of run_command (B-139, B-148): argv or mode instead of command and args. */
#ifndef COOP_TOOLS_HARN_RUN_H
#define COOP_TOOLS_HARN_RUN_H

#include "doors/tools/core/call.h"
#include "doors/tools/harn/harn_start.h"

extern const char *const coop_harn_leases[];

/* All that the form takes besides `command`, for the table of run_command. */
#define HARN_RUN_COMMAND_ROWS                                                                   \
	HARN_RUN_ROWS, IN_BOOL("background", "answer at once; next_completions tells the end"), \
		IN_BOOL("long_running", "the same as background"),                              \
		IN_INT("background_after_ms", 0, TOOL_MS_MAX,                                   \
		       "answer then at the latest; it goes on in the background"),              \
		IN_INT("progress_interval_ms", 100, TOOL_MS_MAX, "notes in next_completions"),  \
		IN_STRING("why", 1024, "what it is for; list_processes shows it"),              \
		IN_ENUM("lease", coop_harn_leases, "how long it may live"),                     \
	{                                                                                       \
		.name = "policy_context", .type = COOP_FIELD_OBJECT,                            \
		.doc = "given back if policy blocks it; decides nothing"                        \
	}

extern const struct coop_field coop_fields_harn_run[];

/* Whether the arguments are of this form: `mode` or `argv` is there. */
bool coop_tool_is_harn(const json_t *args);
/* Carries it out; the arguments have been checked against coop_fields_harn_run by this function
 * itself. */
int coop_tool_harn_run(struct coop_tool_call *call);

#endif
