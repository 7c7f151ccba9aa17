#include "doors/tools/harn/harn_start.h"

#include <errno.h>
#include <string.h>

#include "interface/err.h"
#include "interface/schema.h"

const struct coop_field coop_fields_harn_capture[] = {
	IN_BOOL("stdout", "whether the result has it (true)"),
	IN_BOOL("stderr", "whether the result has it (true)"),
	IN_BOOL("merge_stderr", "stderr goes into stdout, in the order of writing"),
	IN_INT("max_inline_bytes", 0, COOP_JSON_INT_MAX, "bytes of each stream in the result"),
	IN_INT("max_stdout_bytes", 0, COOP_JSON_INT_MAX, "bytes of stdout in the result"),
	IN_INT("max_stderr_bytes", 0, COOP_JSON_INT_MAX, "bytes of stderr in the result"),
	IN_INT("max_pty_bytes", 0, COOP_JSON_INT_MAX, "bytes of a terminal in the result"),
	FIELDS_END,
};

/* Members that the operation spawn takes as they are. */
static const char *const same[] = {
	"argv",       "command", "login",           "interactive", "cwd", "env", "env_mode",
	"env_remove", "kind",    "sandbox_profile", "lease",       "why", NULL,
};

static int check(struct coop_tool_call *call)
{
	const json_t *args = call->args, *capture = coop_arg(args, "capture");
	struct coop_err err = {0};

	if (coop_arg(args, "argv") && coop_arg(args, "command"))
		return coop_tool_fail(call, "invalid_input", "command",
				      "argv and command do not go together: argv is for mode argv, "
				      "command for mode shell");
	if (coop_arg(args, "timeout") && coop_arg(args, "timeout_ms"))
		return coop_tool_fail(call, "invalid_input", "timeout",
				      "timeout and timeout_ms mean the same: give one of them");
	if (coop_arg(args, "shell") && coop_arg(args, "shell_id"))
		return coop_tool_fail(call, "invalid_input", "shell_id",
				      "shell and shell_id mean the same: give one of them");
	if (capture && coop_schema_check(coop_fields_harn_capture, capture, &err) < 0)
		return coop_tool_fail(call, coop_err_name(err.code), "capture", "in capture: %s",
				      err.message);
	return 0;
}

/* The mode that is meant: the one that is named, else the one that the words fit. */
static const char *mode_of(const json_t *args, const char *fallback)
{
	if (coop_arg(args, "argv"))
		fallback = "argv";
	else if (coop_arg(args, "command"))
		fallback = "shell";
	return coop_arg_string(args, "mode", fallback);
}

static int check_mode(struct coop_tool_call *call, const char *mode)
{
	bool shell = strcmp(mode, "shell") == 0;
	const char *needed = shell ? "command" : "argv";

	if (coop_arg(call->args, needed))
		return 0;
	return coop_tool_fail(call, "invalid_input", needed, "mode %s needs %s, %s", mode, needed,
			      shell ? "the shell's line" : "a list: program and arguments");
}

static int set(json_t *object, const char *name, json_t *value)
{
	return json_object_set_new(object, name, value);
}

static int set_plan(json_t *spawn, const json_t *args, const struct coop_harn_plan *plan)
{
	const json_t *progress = coop_arg(args, "progress_interval_ms");
	bool merged = coop_arg_bool(coop_arg(args, "capture"), "merge_stderr", false);
	int64_t limit = coop_arg_int(args, "timeout_ms", coop_arg_int(args, "timeout", 0));
	const char *shell = coop_arg_string(args, "shell", coop_arg_string(args, "shell_id", NULL));
	int r = set(spawn, "mode", json_string(mode_of(args, plan->mode)));

	r |= set(spawn, "overflow", json_string("spool"));
	r |= set(spawn, "digest", json_true());
	if (!coop_arg(args, "lease"))
		r |= set(spawn, "lease", json_string(plan->lease));
	if (plan->completion)
		r |= set(spawn, "completion", json_true());
	if (progress)
		r |= set(spawn, "progress_interval_ms", json_integer(json_integer_value(progress)));
	if (merged)
		r |= set(spawn, "stderr", json_string("merged"));
	if (limit)
		r |= set(spawn, "timeout_ms", json_integer(limit));
	if (shell)
		r |= set(spawn, "shell", json_string(shell));
	return r;
}

static json_t *spawn_args(const json_t *args, const struct coop_harn_plan *plan)
{
	json_t *spawn = json_object();
	int r = spawn ? set_plan(spawn, args, plan) : -1;

	for (size_t i = 0; r == 0 && same[i]; i++) {
		const json_t *value = coop_arg(args, same[i]);
		if (value)
			r = json_object_set(spawn, same[i], (json_t *)(uintptr_t)value);
	}
	if (r == 0)
		return spawn;
	json_decref(spawn);
	return NULL;
}

/* Whether a refusal is policy's: its words stand in the error's details then. */
static int take_verdict(const struct coop_tool_call *call, json_t **ret)
{
	json_t *details = json_loads(call->error.details, 0, NULL);

	if (json_object_get(details, "command_policy")) {
		*ret = details;
		return -EPERM;
	}
	json_decref(details);
	return -EREMOTEIO;
}

int coop_harn_start(struct coop_tool_call *call, const struct coop_harn_plan *plan, json_t **ret)
{
	const json_t *input = coop_arg(call->args, "stdin");
	int r = check(call);

	*ret = NULL;
	if (r == 0)
		r = check_mode(call, mode_of(call->args, plan->mode));
	if (r < 0)
		return r;
	r = coop_tool_spawn(call, spawn_args(call->args, plan), json_string_value(input),
			    input ? json_string_length(input) : 0, ret);
	if (r == -EREMOTEIO && strcmp(call->error.code, "permission_denied") == 0)
		r = take_verdict(call, ret);
	return r;
}
