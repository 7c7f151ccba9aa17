/* Shells: opened, and closed with all that runs in them. */
#include <string.h>

#include "doors/tools/core/call.h"
#include "doors/tools/core/fields.h"
#include "doors/tools/core/record.h"
#include "doors/tools/core/table.h"
#include "doors/tools/shell/shell.h"
#include "interface/schema.h"

#define GRACE_MS 1000

static const struct coop_field open_input[] = {
	ARG_SHELL("default /bin/sh"),
	ARG_COLS(NULL),
	ARG_ROWS(NULL),
	FIELDS_END,
};
static const struct coop_field open_output[] = {
	OUT_STRING("session_id"), OUT_STRING("shell"), OUT_INT("pid"),
	OUT_STRING("hint"),       FIELDS_END,
};

static int run_open(struct coop_tool_call *call)
{
	const char *shell = coop_arg_string(call->args, "shell", "/bin/sh");
	json_t *record;
	int r = coop_tool_spawn(call,
				json_pack("{s:[s], s:s, s:s, s:I, s:I}", "argv", shell, "kind",
					  "pty", "lease", "awaited", "cols",
					  (json_int_t)coop_arg_int(call->args, "cols", 80), "rows",
					  (json_int_t)coop_arg_int(call->args, "rows", 24)),
				NULL, 0, &record);

	if (r < 0)
		return r;
	coop_tool_set(call, "session_id", json_incref(json_object_get(record, "id")));
	coop_tool_set(call, "shell", json_string(shell));
	coop_tool_set(call, "pid", json_incref(json_object_get(record, "pid")));
	coop_tool_set(
		call, "hint",
		json_string("Type with shell_write (end with \\n), wait with shell_expect, and "
			    "call close_shell when done."));
	json_decref(record);
	return 0;
}

const struct coop_tool coop_tool_open_shell = {
	.name = "open_shell",
	.title = "Open a shell",
	.description =
		"Starts an interactive shell: for programs that ask, or commands that share folder "
		"and variables. For one command use run_command.",
	.kind = COOP_TOOL_START,
	.sets = COOP_TOOLS_DEFAULT,
	.input = open_input,
	.output = open_output,
	.run = run_open,
};

static const struct coop_field close_input[] = {
	IN_SESSION,
	ARG_GRACE("default 1000"),
	FIELDS_END,
};
static const struct coop_field close_output[] = {
	OUT_STRING("session_id"),  OUT_BOOL("closed"),   OUT_INT_NULL("exit_code"),
	OUT_STRING_NULL("signal"), OUT_INT("survivors"), FIELDS_END,
};

/* As when a window is closed. Whoever keeps running after the grace is killed, and so is what the
 * shell left behind. */
static int hang_up(struct coop_tool_call *call, const char *id, int64_t grace_ms,
		   struct coop_tool_answer *ret)
{
	int r = coop_tool_ask(
		call, "signal",
		json_pack("{s:s, s:s, s:s}", "id", id, "signal", "SIGHUP", "target", "tree"), NULL);

	/* A stopped job takes the signal only when it goes on. */
	if (r == 0)
		r = coop_tool_ask(call, "signal",
				  json_pack("{s:s, s:s, s:s}", "id", id, "signal", "SIGCONT",
					    "target", "tree"),
				  NULL);
	if (r == 0)
		r = coop_tool_ask(call, "wait",
				  json_pack("{s:s, s:I}", "id", id, "timeout_ms",
					    (json_int_t)coop_tool_patience(call, grace_ms)),
				  NULL);
	if (r == 0)
		r = coop_tool_ask(call, "kill", json_pack("{s:s}", "id", id), ret);
	return r;
}

/* Adds how it ended and whether it is gone. */
static int tell_closed(struct coop_tool_call *call, const char *id, const json_t *killed)
{
	const json_t *end = json_object_get(json_object_get(killed, "process"), "exit");
	json_t *survivors = json_object_get(killed, "survivors");
	struct coop_tool_answer answer;
	int r = coop_tool_ask(call, "release", json_pack("{s:s}", "id", id), &answer);

	if (r < 0)
		return r;
	bool released = json_is_true(json_object_get(answer.json, "released"));
	coop_tool_answer_clear(&answer);
	coop_tool_set(call, "session_id", json_string(id));
	coop_tool_set(call, "closed", json_boolean(released));
	coop_tool_set(call, "exit_code", coop_tool_member(end, "code"));
	coop_tool_set(call, "signal", coop_tool_member(end, "signal_name"));
	coop_tool_set(call, "survivors", survivors ? json_incref(survivors) : json_integer(0));
	if (!released) {
		call->failed = true;
		coop_tool_set(call, "hint",
			      json_string("Some of its processes could not be killed yet: call "
					  "close_shell again."));
	}
	return 0;
}

static int run_close(struct coop_tool_call *call)
{
	struct coop_tool_answer killed = {0};
	json_t *record;
	int r = coop_shell_find(call, &record);

	if (r < 0)
		return r;
	const char *id = coop_tool_record_id(record);
	r = hang_up(call, id, coop_arg_int(call->args, "grace_ms", GRACE_MS), &killed);
	if (r == 0)
		r = tell_closed(call, id, killed.json);
	coop_tool_answer_clear(&killed);
	json_decref(record);
	return r;
}

const struct coop_tool coop_tool_close_shell = {
	.name = "close_shell",
	.title = "Close a shell",
	.description = "Ends a shell with all that runs in it and forgets its output.",
	.kind = COOP_TOOL_END,
	.sets = COOP_TOOLS_DEFAULT,
	.input = close_input,
	.output = close_output,
	.run = run_close,
};
