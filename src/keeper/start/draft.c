#include "keeper/confine/draft.h"
#include "keeper/start/decide.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "interface/bounds.h"
#include "interface/choices.h"
#include "interface/err.h"
#include "interface/schema.h"
#include "keeper/conf/conf.h"
#include "keeper/conf/env.h"
#include "keeper/conf/shells.h"
#include "keeper/confine/confine.h"
#include "keeper/confine/cwd.h"
#include "keeper/confine/injections.h"
#include "keeper/core/keeper.h"
#include "keeper/core/labels.h"
#include "keeper/launch/helpers.h"
#include "keeper/launch/launcher.h"
#include "keeper/link/request.h"
#include "keeper/output/digest.h"
#include "keeper/owner/agent.h"
#include "keeper/owner/session.h"
#include "keeper/process/make.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/process/progress.h"
#include "keeper/process/quota.h"
#include "keeper/process/registry.h"
#include "keeper/start/spawn_failure.h"

#define WORD_MAX (128u << 10) /* the kernel's, for one argument with its NUL */

static int invalid(struct coop_draft *draft, const char *field, const char *what)
{
	return coop_err_field(draft->err, COOP_INVALID_INPUT, field, "%s %s", field, what);
}

/* Found here, with the word that is too long: of the kernel's E2BIG nobody could tell which. */
static int too_long(struct coop_draft *draft, size_t index)
{
	char field[32];

	(void)snprintf(field, sizeof field, "argv[%zu]", index);
	return coop_err_field(draft->err, COOP_TOO_LARGE, field,
			      "%s is longer than the kernel takes, %u bytes", field, WORD_MAX - 1);
}

/* Arguments of the other mode are refused: what was typed in vain is a mistake. */
static int take_argv(struct coop_draft *draft)
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

/* Shells are known by a table: no other program is taken for one. */
static int take_shell(struct coop_draft *draft)
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

/* A program of coop's own. It has no arguments: whatever it is called by, policies see its name. */
static int take_helper(struct coop_draft *draft)
{
	enum coop_helper helper =
		(enum coop_helper)coop_arg_enum(draft->args, "helper", coop_choices_helper, 0);

	for (const char *const *name = (const char *const[]){"argv", "mode", "command", "shell",
							     "login", "interactive", NULL};
	     *name; name++) {
		if (coop_arg(draft->args, *name))
			return invalid(draft, *name, "does not go with helper");
	}
	draft->argv = coop_mem_alloc(2 * sizeof *draft->argv);
	if (!draft->argv)
		return coop_err_no_memory(draft->err);
	draft->argv[0] = coop_helper_name(helper);
	draft->argv[1] = NULL;
	draft->program_fd = coop_helper_fd(coop_launchers_helpers(draft->agent->keeper), helper);
	return draft->program_fd < 0
		       ? coop_spawn_failed_at(draft->err, "helper", -draft->program_fd)
		       : 0;
}

/* Last, when argv and environment are what they will be. */
int coop_draft_labels(struct coop_draft *draft)
{
	int r = coop_labels_take(&draft->process->labels, draft->args, draft->argv,
				 (const char *const *)draft->env.variables);

	return r < 0 ? coop_err_no_memory(draft->err) : 0;
}

/* Among live ones of this agent alone: an alias names what runs, and is free again after it. */
static int check_alias(struct coop_draft *draft)
{
	const char *alias = coop_arg_string(draft->args, "alias", NULL);

	if (!alias)
		return 0;
	COOP_LIST_EACH(coop_registry_all(draft->agent->keeper), link)
	{
		const struct coop_process *other =
			COOP_LIST_ITEM(link, struct coop_process, in.all);
		if (other->agent == draft->agent && coop_process_live(other) &&
		    other->labels.alias && !strcmp(other->labels.alias, alias))
			return coop_err_field(draft->err, COOP_EXISTS, "alias",
					      "a live process of this agent has that alias");
	}
	return 0;
}

static int take_cwd(struct coop_draft *draft)
{
	struct coop_cwd cwd;
	int r = coop_cwd_open(draft->agent, coop_arg_string(draft->args, "cwd", NULL), &cwd,
			      draft->err);

	draft->cwd_fd = cwd.fd;
	draft->cwd_name = coop_mem_strdup(cwd.name);
	if (!draft->cwd_name)
		return coop_err_no_memory(draft->err);
	draft->recordable = r < 0 && *cwd.path && draft->err->code == COOP_INVALID_INPUT;
	if (!*cwd.path)
		return r;
	draft->process->labels.cwd = coop_mem_strdup(cwd.path);
	return r == 0 && !draft->process->labels.cwd ? coop_err_no_memory(draft->err) : r;
}

/* Commands are started as one user, whom `id` names inside: whoever names that one says nothing,
 * and nobody else is to be had. */
static int check_user(struct coop_draft *draft)
{
	const char *user = coop_arg_string(draft->args, "user", NULL);
	const struct coop_launcher_class *launcher = &draft->process->confine->launcher;
	char number[16], known[COOP_CONFINE_USER];
	const char *name = coop_confine_user(draft->process, known);

	(void)snprintf(number, sizeof number, "%u",
		       launcher->other_ids ? launcher->uid : geteuid());
	if (!user || !strcmp(user, number) || !strcmp(user, name))
		return 0;
	draft->recordable = true;
	int r = coop_spawn_failed_at(draft->err, "user", EPERM);
	(void)snprintf(draft->err->message, sizeof draft->err->message,
		       "the process could not be started: user: commands are started as %s alone",
		       name);
	return r;
}

static int64_t at_most(int64_t value, int64_t ceiling)
{
	return value > ceiling ? ceiling : value;
}

static void take_limits(struct coop_draft *draft)
{
	const struct coop_settings *settings = &coop_conf_of(draft->agent->keeper)->settings;
	struct coop_limits *limits = &draft->process->terms.limits;
	bool persistent = draft->process->terms.lease == COOP_LEASE_PERSISTENT;
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

/* Memory for both rings is asked about here, where it costs nothing yet to say no. */
static int take_streams(struct coop_draft *draft)
{
	struct coop_process *process = draft->process;
	int overflow = coop_arg_enum(draft->args, "overflow", coop_choices_overflow,
				     COOP_OVERFLOW_DROP_OLDEST);
	int64_t ring = coop_arg_int(draft->args, "ring_bytes", 1 << 20);

	process->terms.pty = coop_arg_enum(draft->args, "kind", coop_choices_kind, 0) == 1;
	process->terms.merged = coop_arg_enum(draft->args, "stderr", coop_choices_stderr, 0) == 1;
	process->terms.cols = (unsigned short)coop_arg_int(draft->args, "cols", 80);
	process->terms.rows = (unsigned short)coop_arg_int(draft->args, "rows", 24);
	process->output.count = process->terms.pty || process->terms.merged ? 1 : 2;
	if (process->terms.pty && process->terms.merged)
		return invalid(draft, "stderr",
			       "merged is for pipes: a terminal has one output anyway");
	if (!process->terms.pty && (coop_arg(draft->args, "cols") || coop_arg(draft->args, "rows")))
		return invalid(draft, coop_arg(draft->args, "cols") ? "cols" : "rows",
			       "needs kind pty");
	ring = ring < (int64_t)COOP_RING_MIN ? (int64_t)COOP_RING_MIN
					     : at_most(ring, COOP_RING_MAX);
	for (int i = 0; i < process->output.count; i++) {
		process->output.streams[i].number = (uint8_t)(process->terms.pty ? 3 : i + 1);
		process->output.streams[i].overflow = (enum coop_overflow)overflow;
		process->output.streams[i].ring.limit = (size_t)ring;
	}
	return coop_quota_buffer(draft->agent, (uint64_t)ring * (unsigned)process->output.count,
				 draft->err);
}

/* Bytes of files come first, then those of stdin: both came behind one request. */
static struct coop_injections_data bytes_of(const struct coop_request *request)
{
	return (struct coop_injections_data){request->data, request->data_size};
}

/* Bytes in the request mean `data` unless it says otherwise. */
static int take_stdin(struct coop_draft *draft)
{
	int wanted = coop_arg_enum(draft->args, "stdin", coop_choices_stdin, -1);

	draft->input = coop_injections_rest(draft->args, bytes_of(draft->request));
	if (draft->input.size > COOP_STDIN_MAX)
		return coop_err_field(draft->err, COOP_TOO_LARGE, "data",
				      "stdin takes at most %u bytes", COOP_STDIN_MAX);
	if (draft->input.size && wanted >= 0 && wanted != COOP_STDIN_DATA)
		return invalid(draft, "stdin", "must be data where the request brings bytes");
	if (draft->process->terms.pty && wanted == COOP_STDIN_NONE)
		return invalid(draft, "stdin", "none is for pipes: a terminal always has input");
	return 0;
}

/* Of the agent's own sessions alone. */
static int take_session(struct coop_draft *draft)
{
	const char *id = coop_arg_string(draft->args, "session", NULL);

	if (!id)
		return 0;
	draft->session = coop_session_find(draft->agent, id, "session", draft->err);
	return draft->session ? 0 : -EINVAL;
}

static int take_lease(struct coop_draft *draft)
{
	struct coop_process *process = draft->process;

	process->terms.lease = (enum coop_term)coop_arg_enum(
		draft->args, "lease", coop_choices_lease, COOP_LEASE_AWAITED);
	return process->terms.lease == COOP_LEASE_PERSISTENT
		       ? coop_quota_persistent(draft->agent, draft->err)
		       : 0;
}

/* What it asks to be told of besides. */
static int take_reports(struct coop_draft *draft)
{
	struct coop_process *process = draft->process;
	int64_t interval = coop_arg_int(draft->args, "progress_interval_ms", 0);
	bool digest = coop_arg_bool(draft->args, "digest", false);

	process->terms.completion = coop_arg_bool(draft->args, "completion", false);
	if ((digest && !(process->output.digest = coop_digest_new())) ||
	    (interval && coop_progress_want(process, interval) < 0))
		return coop_err_no_memory(draft->err);
	return 0;
}

static int take_injections(struct coop_draft *draft)
{
	return coop_injections_read(draft->args, bytes_of(draft->request),
				    coop_agent_restricted(draft->agent), &draft->injections,
				    draft->err);
}

/* After confinement: which /tmp and which files there are follows from that. */
static int take_env(struct coop_draft *draft)
{
	struct coop_keeper *keeper = draft->agent->keeper;
	const struct coop_injections *files = draft->injections;
	const struct coop_confine *confine = draft->process->confine;
	struct coop_env_how how = {
		.rules = &coop_conf_of(keeper)->env,
		.restricted = coop_agent_restricted(draft->agent),
		/* The first process of a namespace holds its tree together without it. */
		.n = confine->init ? 0 : coop_registry_next(keeper),
		.terminal = draft->process->terms.pty,
		.no_tmpdir = confine->no_tmpdir,
		.tmpdir = confine->tmpdir,
		.defaults = draft->agent->settings.extras.env,
	};
	int r = coop_env_build(draft->args, &how, &draft->env, draft->err);

	for (size_t i = 0; r == 0 && files && i < files->count; i++) {
		if (files->names[i] &&
		    coop_env_set(&draft->env, files->names[i], files->paths[i]) < 0)
			r = coop_err_no_memory(draft->err);
	}
	return r;
}

int coop_draft_fill(struct coop_draft *draft)
{
	/* In this order: what is cheap to say no to comes first. */
	static int (*const steps[])(struct coop_draft *) = {
		take_lease,        take_session, take_reports, take_streams,
		take_stdin,        check_alias,  take_cwd,     take_injections,
		coop_confine_make, check_user,   take_env,     coop_draft_labels,
	};
	bool shell = coop_arg_enum(draft->args, "mode", coop_choices_mode, 0) == 1;
	struct coop_process *process;
	int r = coop_registry_admit(draft->agent->keeper, draft->err);

	draft->cwd_fd = draft->program_fd = -1;
	if (r == 0)
		r = coop_quota_running(draft->agent, draft->err);
	if (r < 0)
		return r;
	process = draft->process = coop_process_new(draft->agent);
	if (!process)
		return coop_err_no_memory(draft->err);
	process->terms.on_exit =
		(enum coop_on_exit)coop_arg_enum(draft->args, "on_exit", coop_choices_on_exit, 0);
	process->terms.quota_kills =
		coop_arg_enum(draft->args, "on_output_quota", coop_choices_quota, 0) == 1;
	process->terms.record_failure = coop_arg_bool(draft->args, "record_failure", false);
	r = coop_arg(draft->args, "helper") ? take_helper(draft)
	    : shell                         ? take_shell(draft)
					    : take_argv(draft);
	for (size_t i = 0; r == 0 && i < sizeof steps / sizeof steps[0]; i++)
		r = steps[i](draft);
	take_limits(draft);
	return r;
}

/* The process as well: the registry has a reference of its own if it was started. */
void coop_draft_clear(struct coop_draft *draft)
{
	if (draft->process)
		coop_process_unref(draft->process);
	if (draft->cwd_fd >= 0)
		(void)close(draft->cwd_fd);
	free(draft->cwd_name);
	coop_env_clear(&draft->env);
	coop_injections_free(draft->injections);
	free(draft->argv);
}
