/* process.exec: a command from its start to its end in one call. */
#include <errno.h>
#include <string.h>

#include "doors/tools/core/call.h"
#include "doors/tools/core/record.h"
#include "doors/tools/core/table.h"
#include "doors/tools/harn/harn_output.h"
#include "doors/tools/harn/harn_result.h"
#include "doors/tools/harn/harn_start.h"

/* Both streams in the order of arrival, as much as of one stream. */
static int set_combined(struct coop_tool_call *call, const json_t *record,
			const struct coop_harn_show *show)
{
	const char *id = json_string_value(json_object_get(record, "id"));
	size_t most = show->most[COOP_STDOUT] > show->most[COOP_STDERR] ? show->most[COOP_STDOUT]
									: show->most[COOP_STDERR];
	struct coop_harn_piece piece;
	int r = coop_harn_read(call, id, "combined", 0, most, &piece);

	if (r < 0)
		return r;
	coop_tool_set(call, "combined", json_stringn_nocheck(piece.text.text, piece.text.size));
	coop_tool_set(call, "combined_truncated", json_boolean(piece.next < piece.total));
	coop_harn_piece_clear(&piece);
	return 0;
}

/* A status of its own: how it ended stands in exit_code and signal. */
static void set_outcome(struct coop_tool_call *call, const json_t *record)
{
	const char *status = coop_harn_status(record);
	const json_t *code = json_object_get(json_object_get(record, "exit"), "code");
	bool success = strcmp(status, "completed") == 0 && json_is_integer(code) &&
		       json_integer_value(code) == 0;

	if (strcmp(status, "killed") == 0)
		coop_tool_set(call, "status", json_string("completed"));
	coop_tool_set(call, "success", json_boolean(success));
	call->failed = !success && strcmp(status, "running") != 0;
}

static int watch_end(struct coop_tool_call *call, const json_t *started)
{
	const char *id = json_string_value(json_object_get(started, "id"));
	struct coop_harn_show show = coop_harn_show(call);
	struct coop_tool_answer answer;
	int r = coop_harn_see_off(call, id, -1, false, &show, &answer);

	if (r < 0)
		return r;
	const json_t *record = json_object_get(answer.json, "process");
	r = set_combined(call, record, &show);
	if (r == 0)
		set_outcome(call, record);
	coop_tool_answer_clear(&answer);
	return r;
}

static int do_exec(struct coop_tool_call *call)
{
	struct coop_harn_plan plan = {.mode = "shell", .lease = "ephemeral"};
	json_t *record;
	int r = coop_harn_start(call, &plan, &record);

	/* What cannot be executed is an error here; only policy's word is a status. */
	if (r == -EPERM && (r = coop_harn_refused(call, r, record)) == 0) {
		coop_tool_set(call, "combined", json_string(""));
		coop_tool_set(call, "success", json_false());
		return 0;
	}
	if (r < 0)
		return r;
	r = watch_end(call, record);
	json_decref(record);
	return r;
}

static const struct coop_field input[] = {
	ARG_COMMAND("the shell's line (mode shell, which is the default)"),
	HARN_RUN_ROWS,
	FIELDS_END,
};

static const struct coop_field output[] = {
	HARN_RESULT_ROWS,
	OUT_STRING("combined"),
	OUT_BOOL("combined_truncated"),
	OUT_BOOL("success"),
	FIELDS_END,
};

const struct coop_tool coop_tool_process_exec = {
	.name = "process.exec",
	.title = "Run a command",
	.description = "Runs a shell line (or argv) to its end and gives exit_code, stdout, stderr "
		       "and both as "
		       "`combined`. For what takes long use run_command with background true.",
	.kind = COOP_TOOL_START,
	.sets = COOP_TOOLS_HARN,
	.input = input,
	.output = output,
	.run = do_exec,
};
