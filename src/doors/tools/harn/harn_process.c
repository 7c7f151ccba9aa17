/* process.spawn, poll, wait, kill, release: a process by its handle. */
#include "doors/tools/core/call.h"
#include "doors/tools/core/record.h"
#include "doors/tools/core/table.h"
#include "doors/tools/harn/harn_result.h"
#include "doors/tools/harn/harn_start.h"
#include "interface/schema.h"

#define HANDLE IN_STRING_NEEDED("handle_id", 512, NULL)

#define POLL_ROWS                                                                                  \
	OUT_STRING("handle_id"), OUT_STRING("status"), OUT_BOOL("running"), OUT_STRING("command"), \
		OUT_STRING_NULL("started_at"), OUT_STRING_NULL("ended_at"), OUT_INT_NULL("pid"),   \
		OUT_INT_NULL("exit_code"), OUT_STRING_NULL("signal"),                              \
		OUT_STRING_NULL("end_cause"), HARN_STREAM_ROWS("stdout"),                          \
		HARN_STREAM_ROWS("stderr"), OUT_STRING("hint")

static const struct coop_field handle_input[] = {HANDLE, FIELDS_END};

static int do_spawn(struct coop_tool_call *call)
{
	struct coop_harn_plan plan = {.mode = "argv", .lease = "awaited"};
	json_t *record;
	int r = coop_harn_start(call, &plan, &record);

	if (r < 0) {
		json_decref(record); /* what policy says stands in the error, too */
		return r;
	}
	const char *id = json_string_value(json_object_get(record, "id"));
	coop_tool_set(call, "handle_id", json_string(id));
	coop_tool_set(call, "pid", json_incref(json_object_get(record, "pid")));
	coop_tool_set(call, "started_at", json_incref(json_object_get(record, "started_at")));
	coop_tool_set(call, "command", json_incref(json_object_get(record, "command")));
	coop_tool_set(call, "status", json_string("running"));
	coop_tool_set(call, "hint",
		      json_sprintf("Call process.wait with {\"handle_id\":\"%s\",\"timeout_ms\":"
				   "30000} for its end, process.poll to look.",
				   id));
	json_decref(record);
	return 0;
}

/* Waits and tells how things are then. */
static int look(struct coop_tool_call *call, int64_t wanted_ms, bool *ret_timed_out)
{
	const char *id = coop_arg_string(call->args, "handle_id", "");
	struct coop_harn_show show = coop_harn_show(call);
	struct coop_tool_answer answer;
	int r = coop_harn_wait(call, id, wanted_ms, &show, &answer);

	if (r < 0)
		return r;
	*ret_timed_out = json_is_true(json_object_get(answer.json, "timed_out"));
	r = coop_harn_answer(
		call, coop_harn_poll(json_object_get(answer.json, "process"), &answer, &show));
	coop_tool_answer_clear(&answer);
	return r;
}

static int do_poll(struct coop_tool_call *call)
{
	bool timed_out;

	return look(call, 0, &timed_out);
}

static int do_wait(struct coop_tool_call *call)
{
	bool timed_out = false;
	int r = look(call, coop_arg_int(call->args, "timeout_ms", -1), &timed_out);

	if (r < 0)
		return r;
	coop_tool_set(call, "timed_out", json_boolean(timed_out));
	call->failed = timed_out;
	return 0;
}

static int do_kill(struct coop_tool_call *call)
{
	static const char *const proof[] = {"success",   "status", "signalled", "killed",
					    "survivors", "strays", "ms"};
	const char *id = coop_arg_string(call->args, "handle_id", "");
	struct coop_tool_answer answer;
	int r = coop_tool_ask(call, "kill", json_pack("{s:s}", "id", id), &answer);

	if (r < 0)
		return r;
	const json_t *record = json_object_get(answer.json, "process");
	coop_tool_set(call, "handle_id", json_incref(json_object_get(record, "id")));
	for (size_t i = 0; i < sizeof proof / sizeof proof[0]; i++)
		coop_tool_set(call, proof[i], json_incref(json_object_get(answer.json, proof[i])));
	coop_tool_set_end(call, record, 0);
	call->failed = !json_is_true(json_object_get(answer.json, "success"));
	if (call->failed)
		coop_tool_set(call, "hint",
			      json_string("Some of it could not be killed yet: call process.kill "
					  "again, then tell the user."));
	coop_tool_answer_clear(&answer);
	return 0;
}

static int do_release(struct coop_tool_call *call)
{
	const char *id = coop_arg_string(call->args, "handle_id", "");
	struct coop_tool_answer answer;
	int r = coop_tool_ask(call, "release", json_pack("{s:s}", "id", id), &answer);

	if (r < 0)
		return r;
	coop_tool_set(call, "released", json_incref(json_object_get(answer.json, "released")));
	coop_tool_set(call, "kill", json_incref(json_object_get(answer.json, "kill")));
	coop_tool_answer_clear(&answer);
	return 0;
}

static const struct coop_field spawn_input[] = {
	ARG_COMMAND("the shell's line (mode shell)"),
	HARN_START_ROWS,
	FIELDS_END,
};

static const struct coop_field spawn_output[] = {
	OUT_STRING("handle_id"),
	OUT_INT("pid"),
	OUT_STRING("started_at"),
	OUT_STRING("command"),
	OUT_STRING("status"),
	OUT_STRING("hint"),
	FIELDS_END,
};

static const struct coop_field poll_output[] = {POLL_ROWS, FIELDS_END};

static const struct coop_field wait_input[] = {
	HANDLE,
	ARG_TIMEOUT("answer then at the latest; default: at its end"),
	FIELDS_END,
};

static const struct coop_field wait_output[] = {POLL_ROWS, OUT_BOOL("timed_out"), FIELDS_END};

static const struct coop_field kill_output[] = {
	OUT_STRING("handle_id"),
	OUT_BOOL("success"),
	OUT_STRING("status"),
	{.name = "signalled", .type = COOP_FIELD_OBJECTS},
	{.name = "killed", .type = COOP_FIELD_OBJECTS},
	OUT_INT("survivors"),
	OUT_INT("strays"),
	OUT_INT("ms"),
	OUT_INT_NULL("exit_code"),
	OUT_STRING_NULL("signal"),
	OUT_STRING_NULL("end_cause"),
	OUT_STRING("hint"),
	FIELDS_END,
};

static const struct coop_field release_output[] = {
	OUT_BOOL("released"),
	{.name = "kill", .type = COOP_FIELD_OBJECT, .nullable = true},
	FIELDS_END,
};

const struct coop_tool coop_tool_process_spawn = {
	.name = "process.spawn",
	.title = "Start a process",
	.description = "Starts a program and answers at once with its handle_id. Then "
		       "process.wait, process.poll, "
		       "process.kill; process.release when it is not needed any more.",
	.kind = COOP_TOOL_START,
	.sets = COOP_TOOLS_HARN,
	.input = spawn_input,
	.output = spawn_output,
	.run = do_spawn,
};

const struct coop_tool coop_tool_process_poll = {
	.name = "process.poll",
	.title = "Look at a process",
	.description =
		"Status and output so far of a process, at once. Looking takes nothing away.",
	.kind = COOP_TOOL_LOOK,
	.sets = COOP_TOOLS_HARN,
	.input = handle_input,
	.output = poll_output,
	.run = do_poll,
};

const struct coop_tool coop_tool_process_wait = {
	.name = "process.wait",
	.title = "Wait for a process",
	.description = "Waits for the end of a process and gives exit_code and output. With "
		       "timed_out true it still "
		       "runs, unharmed: call again.",
	.kind = COOP_TOOL_LOOK,
	.sets = COOP_TOOLS_HARN,
	.input = wait_input,
	.output = wait_output,
	.waits = true,
	.run = do_wait,
};

const struct coop_tool coop_tool_process_kill = {
	.name = "process.kill",
	.title = "Kill a process",
	.description = "Kills a process with all that it started; success true means that nothing "
		       "of it is left. Its "
		       "output stays readable.",
	.kind = COOP_TOOL_END,
	.sets = COOP_TOOLS_HARN,
	.input = handle_input,
	.output = kill_output,
	.run = do_kill,
};

const struct coop_tool coop_tool_process_release = {
	.name = "process.release",
	.title = "Forget a process",
	.description = "Forgets a process and its output; one that runs is killed first. released "
		       "is false if there was none.",
	.kind = COOP_TOOL_END,
	.sets = COOP_TOOLS_HARN,
	.input = handle_input,
	.output = release_output,
	.run = do_release,
};
