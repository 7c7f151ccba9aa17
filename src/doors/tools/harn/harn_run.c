/* The harn form of run_command (B-139, B-148): argv or mode instead of command and args. */
#include <errno.h>
#include <string.h>

#include "doors/tools/core/advice.h"
#include "doors/tools/core/call.h"
#include "doors/tools/core/record.h"
#include "doors/tools/core/table.h"
#include "doors/tools/harn/harn_result.h"
#include "doors/tools/harn/harn_start.h"
#include "interface/choices.h"
#include "interface/schema.h"

static const struct coop_field input[] = {
	ARG_COMMAND("the shell's line (mode shell)"),
	HARN_RUN_ROWS,
	IN_BOOL("background", "answer at once; next_completions tells the end"),
	IN_BOOL("long_running", "the same as background"),
	IN_INT("background_after_ms", 0, TOOL_MS_MAX,
	       "answer then at the latest; it goes on in the background"),
	IN_INT("progress_interval_ms", 100, TOOL_MS_MAX, "notes in next_completions"),
	IN_STRING("why", 1024, "what it is for; list_processes shows it"),
	IN_ENUM("lease", coop_choices_lease, "how long it may live"),
	{.name = "policy_context",
	 .type = COOP_FIELD_OBJECT,
	 .doc = "given back if policy blocks it; decides nothing"},
	FIELDS_END,
};

static int check(struct coop_tool_call *call)
{
	static const char *const others[] = {"args",       "wait",      "timeout_secs",
					     "open_stdin", "max_bytes", NULL};
	struct coop_err err = {0};
	json_t *args = json_copy(call->args);

	if (!args)
		return coop_tool_no_memory(call);
	for (int i = 0; others[i]; i++) {
		if (!coop_arg(args, others[i])) {
			(void)json_object_del(args, others[i]); /* null is as good as absent */
			continue;
		}
		json_decref(args);
		return coop_tool_fail(
			call, "invalid_input", others[i],
			"%s belongs to the form with command and args, not to the one "
			"with argv or mode: use argv, timeout_ms and background "
			"instead, or leave argv and mode out",
			others[i]);
	}
	int r = coop_schema_check(input, args, &err);
	json_decref(args);
	if (r == 0)
		return 0;
	coop_advice_take(&call->error, &err, call->tool);
	return -EINVAL;
}

/* Waits for the end, as long as the caller wants or can. */
static int watch_end(struct coop_tool_call *call, const json_t *started,
		     const struct coop_harn_show *show)
{
	const char *id = json_string_value(json_object_get(started, "id"));
	int64_t wanted = coop_arg_int(call->args, "background_after_ms", -1);
	struct coop_tool_answer answer;
	int r = coop_harn_see_off(call, id, wanted, true, show, &answer);

	if (r < 0)
		return r;
	const json_t *record = json_object_get(answer.json, "process");
	const char *status = coop_harn_status(record);
	const json_t *code = json_object_get(json_object_get(record, "exit"), "code");
	call->failed = strcmp(status, "running") != 0 &&
		       (strcmp(status, "completed") != 0 || json_integer_value(code) != 0);
	coop_tool_answer_clear(&answer);
	return 0;
}

static int run(struct coop_tool_call *call)
{
	int r = check(call);

	if (r < 0)
		return r;
	bool background = coop_arg_bool(call->args, "background",
					coop_arg_bool(call->args, "long_running", false));
	struct coop_harn_plan plan = {
		.mode = "argv",
		.lease = background ? "awaited" : "ephemeral",
		.completion = background,
	};
	struct coop_harn_show show = coop_harn_show(call);
	json_t *record;
	r = coop_harn_start(call, &plan, &record);
	if (r < 0)
		return coop_harn_refused(call, r, record);
	if (background)
		r = coop_harn_answer(call, coop_harn_result(record, NULL, &show));
	else
		r = watch_end(call, record, &show);
	json_decref(record);
	return r;
}

const struct coop_tool coop_tool_harn_run_command = {
	.name = "run_command",
	.input = input,
	.output = coop_fields_harn_result,
	.checks_itself = true,
	.run = run,
};
