#include "keeper/op_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "keeper/choices.h"
#include "keeper/connection.h"
#include "keeper/env.h"
#include "keeper/keeper.h"
#include "keeper/ops.h"
#include "keeper/process.h"
#include "keeper/record.h"
#include "keeper/request.h"
#include "keeper/shells.h"
#include "keeper/spawn.h"
#include "keeper/spool.h"

#define WORD_MAX (128u << 10) /* the kernel's, for one argument with its NUL */

/* Everything a spawn needs, on its way from the arguments to the launcher. */
struct draft {
	struct coop_process *process;
	const json_t *args;
	struct coop_request *request;
	const char **argv; /* borrowed strings */
	struct coop_env env;
	int cwd_fd;
	bool cwd_missing;
	struct coop_err *err;
};

static int invalid(struct draft *draft, const char *field, const char *what)
{
	return coop_err_field(draft->err, COOP_INVALID_INPUT, field, "%s %s", field, what);
}

static int too_long(struct draft *draft, size_t index)
{
	char field[32];

	(void)snprintf(field, sizeof field, "argv[%zu]", index);
	return coop_err_field(draft->err, COOP_TOO_LARGE, field,
			      "%s is longer than the kernel takes, %u bytes", field, WORD_MAX - 1);
}

static int take_argv(struct draft *draft)
{
	const json_t *argv = coop_arg(draft->args, "argv");
	size_t count = json_array_size(argv);

	for (const char *const *name =
		     (const char *const[]){"command", "shell", "login", "interactive", NULL};
	     *name; name++) {
		if (coop_arg(draft->args, *name))
			return invalid(draft, *name, "needs mode shell");
	}
	if (!argv || !count)
		return invalid(draft, "argv", argv ? "must not be empty" : "is required");
	if (!*json_string_value(json_array_get(argv, 0)))
		return invalid(draft, "argv[0]", "must not be empty");
	draft->argv = coop_mem_alloc((count + 1) * sizeof *draft->argv);
	if (!draft->argv)
		return coop_err_no_memory(draft->err);
	for (size_t i = 0; i < count; i++) {
		const json_t *word = json_array_get(argv, i);
		draft->argv[i] = json_string_value(word);
		if (json_string_length(word) >= WORD_MAX)
			return too_long(draft, i);
	}
	draft->argv[count] = NULL;
	return 0;
}

static int take_shell(struct draft *draft)
{
	const char *command = coop_arg_string(draft->args, "command", NULL);
	const struct coop_shell *shell =
		coop_shells_find(coop_arg_string(draft->args, "shell", NULL));
	size_t at = 0;

	if (coop_arg(draft->args, "argv"))
		return invalid(draft, "argv", "needs mode argv");
	if (!command)
		return invalid(draft, "command", "is required");
	if (!shell)
		return invalid(draft, "shell", "is none of list_shells, or is not installed");
	draft->argv = coop_mem_alloc(6 * sizeof *draft->argv);
	if (!draft->argv)
		return coop_err_no_memory(draft->err);
	draft->argv[at++] = shell->path;
	if (coop_arg_bool(draft->args, "login", false))
		draft->argv[at++] = "-l";
	if (coop_arg_bool(draft->args, "interactive", false))
		draft->argv[at++] = "-i";
	draft->argv[at++] = "-c";
	draft->argv[at++] = command;
	draft->argv[at] = NULL;
	draft->process->labels.shell = true;
	return 0;
}

static int take_labels(struct draft *draft)
{
	int r = coop_labels_take(&draft->process->labels, draft->args, draft->argv,
				 (const char *const *)draft->env.variables);

	return r < 0 ? coop_err_no_memory(draft->err) : 0;
}

static int check_alias(struct draft *draft)
{
	const char *alias = coop_arg_string(draft->args, "alias", NULL);

	if (!alias)
		return 0;
	COOP_LIST_EACH(&draft->request->keeper->registry.all, link)
	{
		const struct coop_process *other =
			COOP_LIST_ITEM(link, struct coop_process, in_all);
		if (coop_process_live(other) && other->labels.alias &&
		    !strcmp(other->labels.alias, alias))
			return coop_err_field(draft->err, COOP_EXISTS, "alias",
					      "a live process has that alias");
	}
	return 0;
}

static int no_cwd(struct draft *draft, const char *path, int error)
{
	int r;

	if (error == EMFILE || error == ENFILE) {
		r = coop_err_set(draft->err, COOP_SPAWN_FAILED,
				 "no file descriptor is left for the working directory");
		coop_err_detail(draft->err, "step", "chdir");
	} else {
		r = coop_err_field(draft->err, COOP_INVALID_INPUT, "cwd", "cwd %.300s: %s", path,
				   strerror(error));
		draft->cwd_missing = true;
		draft->process->labels.cwd = coop_mem_strdup(path);
	}
	coop_err_detail(draft->err, "errno", coop_err_errno_name(error));
	return r;
}

/* Resolved once: the directory that is checked and shown is the one that is entered. */
static int take_cwd(struct draft *draft)
{
	const char *given = coop_arg_string(draft->args, "cwd", coop_env_home());
	char path[4096], link[64], resolved[4096];

	if (!*given)
		return invalid(draft, "cwd", "must not be empty");
	int n = *given == '/' ? snprintf(path, sizeof path, "%s", given)
			      : snprintf(path, sizeof path, "%s/%s", coop_env_home(), given);
	if (n < 0 || (size_t)n >= sizeof path)
		return invalid(draft, "cwd", "is too long");
	draft->cwd_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (draft->cwd_fd < 0)
		return no_cwd(draft, path, errno);
	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", draft->cwd_fd);
	ssize_t size = readlink(link, resolved, sizeof resolved - 1);
	if (size < 0)
		return invalid(draft, "cwd", "cannot be resolved");
	resolved[size] = 0;
	draft->process->labels.cwd = coop_mem_strdup(resolved);
	return draft->process->labels.cwd ? 0 : coop_err_no_memory(draft->err);
}

static int64_t at_most(int64_t value, int64_t ceiling)
{
	return value > ceiling ? ceiling : value;
}

static void take_limits(struct draft *draft)
{
	const struct coop_settings *settings = &draft->request->keeper->settings;
	struct coop_limits *limits = &draft->process->limits;
	bool persistent = draft->process->lease == COOP_LEASE_PERSISTENT;
	int64_t retention =
		coop_arg_int(draft->args, "exit_retention_ms", settings->exit_retention_ms);

	limits->timeout_ms = coop_arg_int(draft->args, "timeout_ms", 0);
	limits->timeout_grace_ms = coop_arg_int(draft->args, "timeout_grace_ms", 0);
	limits->idle_timeout_ms = coop_arg_int(draft->args, "idle_timeout_ms",
					       persistent ? settings->persistent_idle_ms : 0);
	limits->max_lifetime_ms = coop_arg_int(draft->args, "max_lifetime_ms",
					       persistent ? settings->max_lifetime_ms : 0);
	limits->max_lifetime_ms = at_most(limits->max_lifetime_ms, settings->max_lifetime_ms);
	retention = at_most(retention, 3600000);
	limits->exit_retention_ms =
		retention < settings->min_retention_ms ? settings->min_retention_ms : retention;
}

static int take_streams(struct draft *draft)
{
	struct coop_process *process = draft->process;
	int overflow = coop_arg_enum(draft->args, "overflow", coop_choices_overflow,
				     COOP_OVERFLOW_DROP_OLDEST);
	int64_t ring = coop_arg_int(draft->args, "ring_bytes", 1 << 20);

	process->pty = coop_arg_enum(draft->args, "kind", coop_choices_kind, 0) == 1;
	process->merged = coop_arg_enum(draft->args, "stderr", coop_choices_stderr, 0) == 1;
	process->cols = (unsigned short)coop_arg_int(draft->args, "cols", 80);
	process->rows = (unsigned short)coop_arg_int(draft->args, "rows", 24);
	process->stream_count = process->pty || process->merged ? 1 : 2;
	if (process->pty && process->merged)
		return invalid(draft, "stderr",
			       "merged is for pipes: a terminal has one output anyway");
	if (!process->pty && (coop_arg(draft->args, "cols") || coop_arg(draft->args, "rows")))
		return invalid(draft, coop_arg(draft->args, "cols") ? "cols" : "rows",
			       "needs kind pty");
	ring = ring < (int64_t)COOP_RING_MIN ? (int64_t)COOP_RING_MIN
					     : at_most(ring, COOP_RING_MAX);
	for (int i = 0; i < process->stream_count; i++) {
		process->streams[i].number = (uint8_t)(process->pty ? 3 : i + 1);
		process->streams[i].overflow = (enum coop_overflow)overflow;
		process->streams[i].ring.limit = (size_t)ring;
	}
	return 0;
}

static int check_stdin(struct draft *draft)
{
	int wanted = coop_arg_enum(draft->args, "stdin", coop_choices_stdin, -1);
	size_t size = draft->request->data_size;

	if (size && wanted >= 0 && wanted != COOP_STDIN_DATA)
		return invalid(draft, "stdin", "must be data where the request brings bytes");
	if (draft->process->pty && wanted == COOP_STDIN_NONE)
		return invalid(draft, "stdin", "none is for pipes: a terminal always has input");
	return 0;
}

static int fill_draft(struct draft *draft)
{
	struct coop_process *process = draft->process;
	bool shell = coop_arg_enum(draft->args, "mode", coop_choices_mode, 0) == 1;
	int r = shell ? take_shell(draft) : take_argv(draft);

	process->lease = (enum coop_lease)coop_arg_enum(draft->args, "lease", coop_choices_lease,
							COOP_LEASE_AWAITED);
	process->on_exit =
		(enum coop_on_exit)coop_arg_enum(draft->args, "on_exit", coop_choices_on_exit, 0);
	process->quota_kills =
		coop_arg_enum(draft->args, "on_output_quota", coop_choices_quota, 0) == 1;
	process->record_failure = coop_arg_bool(draft->args, "record_failure", false);
	if (r == 0)
		r = take_streams(draft);
	if (r == 0)
		r = check_stdin(draft);
	if (r == 0)
		r = check_alias(draft);
	take_limits(draft);
	if (r == 0)
		r = coop_env_build(draft->args, draft->request->keeper->registry.next_n,
				   process->pty, &draft->env, draft->err);
	if (r == 0)
		r = take_cwd(draft);
	return r < 0 ? r : take_labels(draft);
}

static int start(struct draft *draft)
{
	struct coop_request *request = draft->request;
	struct coop_process *process = draft->process;
	int wanted = coop_arg_enum(draft->args, "stdin", coop_choices_stdin,
				   request->data_size ? COOP_STDIN_DATA : COOP_STDIN_NONE);
	static const uint8_t nothing[1];
	struct coop_spawn_command command = {
		.argv = (char *const *)draft->argv,
		.envp = draft->env.variables,
		.cwd_fd = draft->cwd_fd,
		.stdin_pipe = wanted != COOP_STDIN_NONE,
		.stdin_bytes = wanted == COOP_STDIN_DATA ? (request->data ? request->data : nothing)
							 : NULL,
		.stdin_size = request->data_size,
		.keep_stdin_open = coop_arg_bool(draft->args, "keep_stdin_open", false),
	};

	if (coop_registry_add(process) < 0)
		return coop_err_no_memory(draft->err);
	int r = process->streams[0].overflow == COOP_OVERFLOW_SPOOL
			? coop_spool_open(process, draft->err)
			: 0;
	if (process->lease == COOP_LEASE_EPHEMERAL)
		coop_list_add(&request->conn->leases, &process->in_lease);
	if (r == 0)
		r = coop_spawn_start(process, &command, request, draft->err);
	if (r < 0)
		coop_registry_remove(process);
	return r;
}

/* A caller that asked for it gets a finished record of a command whose directory is not there. The error stays. */
static void record_missing_cwd(struct draft *draft)
{
	struct coop_process *process = draft->process;
	struct coop_err failure = *draft->err;

	if (!process->record_failure || !process->labels.cwd || take_labels(draft) < 0 ||
	    coop_registry_add(process) < 0) {
		*draft->err = failure;
		return;
	}
	coop_process_failed(process, 126);
	coop_err_detail(draft->err, "id", process->id);
}

void coop_op_spawn(struct coop_request *request)
{
	struct coop_err err = {0};
	struct draft draft = {.request = request, .args = request->args, .cwd_fd = -1, .err = &err};
	int r = coop_registry_admit(request->keeper, &err);

	if (r == 0 && !(draft.process = coop_process_new(request->keeper)))
		r = coop_err_no_memory(&err);
	if (r == 0)
		r = fill_draft(&draft);
	if (r == 0)
		r = start(&draft);
	if (r < 0 && draft.cwd_missing)
		record_missing_cwd(&draft);
	if (draft.process)
		coop_process_unref(draft.process);
	if (draft.cwd_fd >= 0)
		(void)close(draft.cwd_fd);
	coop_env_clear(&draft.env);
	free(draft.argv);
	if (r < 0)
		coop_request_fail(request, &err);
}

void coop_spawn_reply(struct coop_request *request, struct coop_process *process)
{
	struct coop_jsonw w;

	coop_request_result(request, &w);
	coop_record_write(process, COOP_RECORD_CACHED, &w, "process");
	coop_request_end(request, &w);
}
