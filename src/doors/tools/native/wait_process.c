/* wait_for_process. */
#include <stdlib.h>
#include <string.h>

#include "doors/tools/core/call.h"
#include "doors/tools/core/fields.h"
#include "doors/tools/core/process_arg.h"
#include "doors/tools/core/record.h"
#include "doors/tools/core/table.h"
#include "doors/tools/core/waiting.h"
#include "interface/schema.h"

static const struct coop_field input[] = {
	IN_PID,
	IN_INT("timeout_ms", 100, TOOL_MS_MAX, "(30000)"),
	FIELDS_END,
};
static const struct coop_field output[] = {
	OUT_INT_NULL("pid"),       OUT_STRING("id"),
	OUT_STRING("status"),      OUT_INT_NULL("exit_code"),
	OUT_STRING_NULL("signal"), OUT_STRING_NULL("end_cause"),
	OUT_BOOL("timed_out"),     FIELDS_END,
};

/* What to do about one that has not ended. */
static const char *next_step(const json_t *record)
{
	const char *state = json_string_value(json_object_get(record, "state"));

	if (json_is_true(json_object_get(record, "blocked_on_stdin")))
		return "It waits for input: write_stdin, or close_stdin.";
	if (state && strcmp(state, "stopped") == 0)
		return "It is stopped: kill_process with SIGCONT lets it go on.";
	return "It still runs. Call again to wait further.";
}

static int run(struct coop_tool_call *call)
{
	struct coop_tool_answer answer;
	char *id = NULL;
	int r = coop_tool_id(call, "pid", &id);

	if (r == 0)
		r = coop_tool_wait_end(call, id, coop_arg_int(call->args, "timeout_ms", 30000), 0,
				       &answer);
	free(id);
	if (r < 0)
		return r;
	const json_t *record = json_object_get(answer.json, "process");
	bool running = json_is_true(json_object_get(answer.json, "running"));
	coop_tool_set_process(call, record);
	coop_tool_set(call, "status", coop_tool_status(record));
	coop_tool_set_end(call, record, 0);
	coop_tool_set(call, "timed_out", json_boolean(running));
	if (running)
		coop_tool_set(call, "hint", json_string(next_step(record)));
	call->failed = running;
	coop_tool_answer_clear(&answer);
	return 0;
}

const struct coop_tool coop_tool_wait_for_process = {
	.name = "wait_for_process",
	.title = "Wait for the end",
	.description =
		"Waits until a process ends, at most timeout_ms; it is never harmed. For ports, "
		"output or several processes use wait_any.",
	.kind = COOP_TOOL_LOOK,
	.sets = COOP_TOOLS_DEFAULT,
	.input = input,
	.output = output,
	.waits = true,
	.run = run,
};
