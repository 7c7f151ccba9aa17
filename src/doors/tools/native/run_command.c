/* run_command: a program or a shell line, waited for or left running. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doors/tools/core/call.h"
#include "doors/tools/core/fields.h"
#include "doors/tools/core/output.h"
#include "doors/tools/core/record.h"
#include "doors/tools/core/table.h"
#include "doors/tools/core/waiting.h"
#include "interface/schema.h"

/* So much stays readable of each stream when a result shows only its ends. */
#define RING_BYTES (8 << 20)

static const struct coop_field input[] = {
	ARG_COMMAND("a program; without args: a shell line", .required = true),
	IN_STRINGS("args", 131072, NULL),
	IN_BOOL("wait", "false: start it in the background, get its id (true)"),
	IN_INT("timeout_secs", 1, 3600, "it is killed then (30; background: none)"),
	ARG_CWD(NULL),
	ARG_ENV(NULL),
	IN_STRING("stdin", 1 << 20, "input text, then end of file unless open_stdin"),
	IN_BOOL("open_stdin", "background: takes write_stdin"),
	IN_STRING("why", 1024, "what it is for; list_processes shows it"),
	IN_INT("max_bytes", 1, COOP_TOOL_INLINE,
	       "of each stream in the result: head and tail (50000)"),
	FIELDS_END,
};
static const struct coop_field output[] = {
	OUT_INT_NULL("pid"),
	OUT_STRING("id"),
	OUT_INT_NULL("exit_code"),
	OUT_STRING_NULL("signal"),
	OUT_STRING_NULL("end_cause"),
	OUT_BOOL("timed_out"),
	OUT_STRING("stdout"),
	OUT_STRING("stderr"),
	OUT_STRING("status"),
	OUT_STRING("hint"),
	FIELDS_END,
};

/* Whether it means something to a shell only. */
static bool is_line(const char *command)
{
	static const char *const words[] = {
		".",     ":",        "alias",  "bg",    "cd",      "command", "eval",
		"exec",  "exit",     "export", "fg",    "getopts", "hash",    "jobs",
		"read",  "readonly", "set",    "times", "trap",    "type",    "ulimit",
		"umask", "unalias",  "unset",  "wait",
	};

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strcmp(words[i], command) == 0)
			return true;
	return strpbrk(command, " \t\n|&;<>()$`\\\"'*?~#!{}[]=") != NULL;
}

/* A relative one is meant from where commands start. */
static json_t *folder(const struct coop_tool_call *call, const char *cwd)
{
	const char *base = call->setup->cwd;

	return *cwd == '/' || !base ? json_string(cwd) : json_sprintf("%s/%s", base, cwd);
}

static int add_command(const struct coop_tool_call *call, json_t *spawn)
{
	const char *command = coop_arg_string(call->args, "command", "");
	const json_t *args = coop_arg(call->args, "args");

	if (!args && is_line(command))
		return json_object_set_new(spawn, "mode", json_string("shell")) |
		       json_object_set_new(spawn, "command", json_string(command));
	json_t *argv = json_pack("[s]", command);
	int r = argv && args ? json_array_extend(argv, (json_t *)(uintptr_t)args) : 0;
	return r | json_object_set_new(spawn, "mode", json_string("argv")) |
	       json_object_set_new(spawn, "argv", argv);
}

static int add_stdin(const struct coop_tool_call *call, json_t *spawn)
{
	const bool text = *coop_arg_string(call->args, "stdin", "");

	if (!coop_arg_bool(call->args, "open_stdin", false))
		return 0;
	return json_object_set_new(spawn, "stdin", json_string(text ? "data" : "pipe")) |
	       (text ? json_object_set_new(spawn, "keep_stdin_open", json_true()) : 0);
}

/* NULL without memory: nothing may be left out. */
static json_t *spawn_args(struct coop_tool_call *call, bool wait)
{
	const json_t *env = coop_arg(call->args, "env");
	const char *cwd = coop_arg_string(call->args, "cwd", NULL);
	int64_t seconds = coop_arg_int(call->args, "timeout_secs", wait ? 30 : 0);
	json_t *spawn =
		json_pack("{s:s, s:i, s:s*}", "lease", wait ? "ephemeral" : "awaited", "ring_bytes",
			  RING_BYTES, "why", coop_arg_string(call->args, "why", NULL));
	int r = spawn ? add_command(call, spawn) | add_stdin(call, spawn) : -1;

	if (r == 0 && cwd)
		r = json_object_set_new(spawn, "cwd", folder(call, cwd));
	if (r == 0 && env)
		r = json_object_set(spawn, "env", (json_t *)(uintptr_t)env);
	if (r == 0 && seconds)
		r = json_object_set_new(spawn, "timeout_ms", json_integer(seconds * 1000));
	if (r == 0)
		return spawn;
	json_decref(spawn);
	return NULL;
}

/* The form of a process that goes on. */
static void set_running(struct coop_tool_call *call, const json_t *record, const char *hint)
{
	coop_tool_set_process(call, record);
	coop_tool_set(call, "status", json_string("running"));
	coop_tool_set(call, "hint", json_string(hint));
}

static int answer_running(struct coop_tool_call *call, const struct coop_tool_answer *answer,
			  size_t budget)
{
	const json_t *record = json_object_get(answer->json, "process");
	int r = coop_tool_keep(call, json_string_value(json_object_get(record, "id")));

	if (r < 0)
		return r;
	set_running(call, record,
		    "Not done yet; it goes on in the background. wait_for_process waits further, "
		    "read_process_output reads on, stop_process ends it.");
	return coop_tool_add_output(call, record, answer, budget);
}

/* Streams are always there, so that nobody has to ask whether they are. */
static void set_missing(struct coop_tool_call *call)
{
	static const char *const names[] = {"stdout", "stderr"};

	for (size_t i = 0; i < 2; i++)
		if (!json_object_get(call->result, names[i]))
			coop_tool_set(call, names[i], json_string(""));
}

/* Output that is no text is there as it was. */
static void tell_of_bytes(struct coop_tool_call *call)
{
	if (json_object_get(call->result, "stdout_utf8_valid") ||
	    json_object_get(call->result, "stderr_utf8_valid"))
		coop_tool_set(call, "hint",
			      json_string("It printed bytes that are no text: read_process_output "
					  "with encoding \"base64\" gives them exactly."));
}

static int answer_ended(struct coop_tool_call *call, const struct coop_tool_answer *answer,
			size_t budget)
{
	const json_t *record = json_object_get(answer->json, "process");
	const char *cause = json_string_value(json_object_get(record, "end_cause"));
	json_int_t left = json_integer_value(json_object_get(record, "descendants"));

	/* What it left must outlive this connection, as the hint says. */
	if (left && coop_tool_keep(call, json_string_value(json_object_get(record, "id"))) < 0)
		left = 0;
	coop_tool_let_go(call);
	coop_tool_set_process(call, record);
	coop_tool_set_end(call, record, -1);
	bool timed_out = cause && strcmp(cause, "timed_out") == 0;
	coop_tool_set(call, "timed_out", json_boolean(timed_out));
	int r = coop_tool_add_output(call, record, answer, budget);
	set_missing(call);
	tell_of_bytes(call);
	if (json_object_get(record, "facts"))
		coop_tool_set(call, "facts", json_incref(json_object_get(record, "facts")));
	if (timed_out)
		coop_tool_set(call, "hint",
			      json_string("It was killed at its time limit. Give it a larger "
					  "timeout_secs, or wait false to let it run in the "
					  "background."));
	else if (left)
		coop_tool_set(call, "hint",
			      json_sprintf("%d process%s that it started still run%s: stop_process "
					   "with this id ends them.",
					   (int)left, left == 1 ? "" : "es", left == 1 ? "s" : ""));
	call->failed = json_integer_value(json_object_get(call->result, "exit_code")) != 0;
	return r;
}

static int wait_for(struct coop_tool_call *call, const json_t *record)
{
	size_t budget = (size_t)coop_arg_int(call->args, "max_bytes", 0);
	const char *id = json_string_value(json_object_get(record, "id"));
	struct coop_tool_answer answer;

	if (!budget || budget > coop_tool_inline(call))
		budget = coop_tool_inline(call);
	int r = coop_tool_wait_end(call, id, -1, budget, &answer);
	if (r < 0)
		return r;
	r = json_is_true(json_object_get(answer.json, "running"))
		    ? answer_running(call, &answer, budget)
		    : answer_ended(call, &answer, budget);
	coop_tool_answer_clear(&answer);
	return r;
}

/* The keeper speaks to doors; here is what it means in the words of this tool. */
static int explain(struct coop_tool_call *call, int r)
{
	struct coop_error *error = &call->error;

	/* The envelope of policy says the same five times. */
	if (strcmp(error->code, "permission_denied") == 0)
		(void)snprintf(error->details, sizeof error->details, "{}");
	return r;
}

static int run_plain(struct coop_tool_call *call)
{
	bool wait = coop_arg_bool(call->args, "wait", true);
	const char *text = coop_arg_string(call->args, "stdin", "");
	json_t *record = NULL;

	if (!*coop_arg_string(call->args, "command", ""))
		return coop_tool_fail(call, "invalid_input", "command",
				      "command must not be empty");
	if (wait && coop_arg_bool(call->args, "open_stdin", false))
		return coop_tool_fail(call, "invalid_input", "open_stdin",
				      "open_stdin goes with wait false: nobody could write to it "
				      "while this call waits");
	int r = coop_tool_spawn(call, spawn_args(call, wait), text, strlen(text), &record);
	if (r < 0)
		return explain(call, r);
	if (wait)
		r = wait_for(call, record);
	else
		set_running(call, record,
			    "It runs in the background. wait_for_process waits for its end, "
			    "read_process_output reads its output, wait_any waits for a port or a "
			    "line of output, stop_process ends it.");
	json_decref(record);
	return r;
}

const struct coop_tool coop_tool_run_command = {
	.name = "run_command",
	.title = "Run a command",
	.description =
		"Runs a command in a sandbox and returns its output and how it ended. What takes "
		"longer than this call may wait goes on in the background and returns its id.",
	.kind = COOP_TOOL_START,
	.sets = COOP_TOOLS_ALL,
	.input = input,
	.output = output,
	.harn = &coop_tool_harn_run_command,
	.run = run_plain,
};
