#include "keeper/start/spawn_failure.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "keeper/confine/confine.h"
#include "keeper/confine/cwd.h"
#include "keeper/owner/agent.h"
#include "keeper/process/process.h"
#include "keeper/start/spawn.h"

int coop_spawn_failed_at(struct coop_err *err, const char *step, int error)
{
	int r = coop_err_set(err, COOP_SPAWN_FAILED, "the process could not be started: %s: %s",
			     step, strerror(error));

	coop_err_detail(err, "step", step);
	coop_err_detail(err, "errno", coop_err_errno_name(error));
	return r;
}

static const char *step_name(enum coop_plan_step step)
{
	static const char *const names[COOP_STEP_COUNT] = {
		[COOP_STEP_CLONE] = "clone",
		[COOP_STEP_BODY] = "body",
		[COOP_STEP_NETWORK] = "network",
		[COOP_STEP_IDENTITY] = "identity",
		[COOP_STEP_DEATH_SIGNAL] = "death_signal",
		[COOP_STEP_SESSION] = "session",
		[COOP_STEP_MOUNTS] = "mounts",
		[COOP_STEP_INIT] = "init",
		[COOP_STEP_TERMINAL] = "terminal",
		[COOP_STEP_STDIO] = "stdio",
		[COOP_STEP_CHDIR] = "chdir",
		[COOP_STEP_LIMITS] = "limits",
		[COOP_STEP_CLOSE_FDS] = "close_fds",
		[COOP_STEP_NO_NEW_PRIVS] = "no_new_privs",
		[COOP_STEP_LANDLOCK] = "landlock",
		[COOP_STEP_CAPABILITIES] = "capabilities",
		[COOP_STEP_SECCOMP] = "seccomp",
		[COOP_STEP_EXEC] = "exec",
	};

	return step < COOP_STEP_COUNT ? names[step] : "unknown";
}

/* Which protection a step is part of; NULL for steps that are part of none. */
static const char *step_protection(enum coop_plan_step step)
{
	switch (step) {
	case COOP_STEP_NETWORK:
		return "network";
	case COOP_STEP_IDENTITY:
		return "identity";
	case COOP_STEP_MOUNTS:
	case COOP_STEP_LANDLOCK:
		return "files";
	case COOP_STEP_NO_NEW_PRIVS:
	case COOP_STEP_CAPABILITIES:
		return "privileges";
	case COOP_STEP_SECCOMP:
		return "seccomp";
	case COOP_STEP_INIT:
	case COOP_STEP_DEATH_SIGNAL:
		return "kill";
	case COOP_STEP_LIMITS:
		return "limits";
	case COOP_STEP_CLONE:
	case COOP_STEP_BODY:
	case COOP_STEP_SESSION:
	case COOP_STEP_TERMINAL:
	case COOP_STEP_STDIO:
	case COOP_STEP_CHDIR:
	case COOP_STEP_CLOSE_FDS:
	case COOP_STEP_EXEC:
	case COOP_STEP_COUNT:
		break;
	}
	return NULL;
}

/* Under a keeper of root's a folder that is named as the workspace is shown as the command's own; a
 * user's keeper has no more rights than the command, and there it helps nobody. */
static void refuse_cwd(const struct coop_process *process, bool closed, struct coop_err *err)
{
	const struct coop_launcher_class *launcher = &process->confine->launcher;

	if (!coop_agent_is_main(process->agent) || !closed) {
		(void)coop_cwd_closed(process->agent, process->confine->start->cwd_name, err);
		return;
	}
	(void)coop_err_field(err, COOP_INVALID_INPUT, "cwd",
			     "cwd %.300s cannot be entered by uid %u, whom the command runs as%s",
			     process->labels.cwd, launcher->other_ids ? launcher->uid : geteuid(),
			     launcher->other_ids ? "; name it as the workspace (--workspace DIR)"
						 : "");
	coop_err_detail_raw(err, "advised", launcher->other_ids ? "true" : "false");
}

/* What a mount was for, in words: which operation of the plan it was, and where. */
static void name_operation(const struct coop_spawn *spawn, struct coop_err *err)
{
	const struct coop_layout *layout = &spawn->process->confine->start->layout;
	size_t count = coop_buf_size(&layout->ops) / sizeof(struct coop_plan_op);
	uint32_t which = spawn->failure.op;

	if (spawn->failure.step != COOP_STEP_MOUNTS || which >= count)
		return;
	const struct coop_plan_op *op =
		(const struct coop_plan_op *)(const void *)coop_buf_front(&layout->ops) + which;
	if (!op->path)
		return;
	const char *path = (const char *)coop_buf_front(&layout->text) + op->path;
	coop_err_detail(err, "path", path);
	size_t used = strlen(err->message);
	(void)snprintf(
		err->message + used, sizeof err->message - used,
		" of %.300s (the command runs as uid %u, who must be able to get there)", path,
		spawn->process->confine->launcher.other_ids ? spawn->process->confine->launcher.uid
							    : geteuid());
	if (spawn->failure.error == EACCES && !strcmp(path, spawn->process->labels.cwd))
		refuse_cwd(spawn->process, true, err);
}

/* The program alone: it is not its arguments that cannot be executed. */
static void name_program(const struct coop_process *process, int error, struct coop_err *err)
{
	json_t *argv = json_loads(process->labels.argv_json, JSON_ALLOW_NUL, NULL);
	const char *program = json_string_value(json_array_get(argv, 0));

	(void)snprintf(err->message, sizeof err->message, "cannot execute %.300s: %s",
		       program ? program : process->labels.command, strerror(error));
	json_decref(argv);
}

void coop_spawn_explain(const struct coop_spawn *spawn, struct coop_err *err)
{
	const struct coop_process *process = spawn->process;
	int error = spawn->reply_error ? spawn->reply_error : spawn->failure.error;
	enum coop_plan_step step =
		spawn->reply_error ? spawn->reply_step : (enum coop_plan_step)spawn->failure.step;
	const char *protection =
		process->confine->kind == COOP_CONFINE_NONE ? NULL : step_protection(step);

	(void)coop_spawn_failed_at(err, step_name(step), error);
	/* Want of resources is nobody's refusal. */
	if (error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE)
		protection = NULL;
	if (protection) {
		err->code = COOP_SANDBOX_UNAVAILABLE;
		(void)snprintf(err->message, sizeof err->message,
			       "sandbox: %s could not be set up: %s: %s", protection,
			       step_name(step), strerror(error));
		coop_err_detail(err, "protection", protection);
		coop_err_detail(err, "reason", strerror(error));
		name_operation(spawn, err);
	}
	if (step == COOP_STEP_CHDIR && (error == EACCES || error == ENOENT || error == ENOTDIR)) {
		refuse_cwd(process, error == EACCES, err);
		if (coop_agent_is_main(process->agent))
			coop_err_detail(err, "errno", coop_err_errno_name(error));
	}
	if (step == COOP_STEP_EXEC)
		name_program(process, error, err);
	if (error == E2BIG)
		(void)coop_err_field(err, COOP_TOO_LARGE, "argv",
				     "argv and env are larger than the kernel takes");
}
