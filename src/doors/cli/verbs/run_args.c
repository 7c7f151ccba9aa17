/* The arguments of spawn, from the options of coop run and this program's own surroundings. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doors/cli/cli.h"
#include "doors/cli/options.h"
#include "doors/cli/parse.h"
#include "doors/cli/place.h"
#include "doors/cli/sandbox_args.h"
#include "doors/cli/terminal/feeder.h"
#include "doors/cli/terminal/terminal.h"
#include "doors/cli/verbs/inject.h"
#include "doors/cli/verbs/run.h"

#define AT(member) offsetof(struct cli_run, member)

const struct cli_option cli_run_options[] = {
	{"detach", 'd', CLI_FLAG, AT(detach), NULL, NULL,
	 "start it in the background and print its id"},
	{"tty", 't', CLI_FLAG, AT(terminal), NULL, NULL, "give it a terminal"},
	{"interactive", 'i', CLI_FLAG, AT(interactive), NULL, NULL,
	 "forward stdin even if it is a terminal; with -d: leave stdin open for coop stdin"},
	{"no-stdin", 'n', CLI_FLAG, AT(no_stdin), NULL, NULL,
	 "do not read stdin, the command sees its end at once"},
	CLI_ARG("tag", AT(tag), "a name of yours for it"),
	CLI_ARG("why", AT(why), "what it is for"),
	CLI_ARG("task", AT(task), "the task it belongs to"),
	CLI_ARG("cwd", AT(cwd), "where it runs (here)"),
	CLI_ARG("env", AT(env), "set a variable; without =VALUE pass on the one from here",
		.kind = CLI_LIST),
	CLI_ARG("env_remove", AT(env_remove), "leave a variable out"),
	CLI_ARG("env_mode", AT(env_mode),
		"what --env is laid over: the usual ten variables, or nothing (replace)"),
	CLI_ARG("timeout_ms", AT(timeout), "kill it after this time (exit code 124)"),
	CLI_ARG("timeout_grace_ms", AT(timeout_grace),
		"SIGTERM at the timeout, and SIGKILL so much later (at most 30s)"),
	CLI_ARG("idle_timeout_ms", AT(idle_timeout),
		"with -d: end it after this long without output, input or a call about it; does "
		"not run while somebody follows its output"),
	CLI_ARG("max_lifetime_ms", AT(lifetime), "stop it after this time"),
	CLI_ARG("exit_retention_ms", AT(retention), "keep its output so long after its end (10m)"),
	CLI_ARG("ring_bytes", AT(ring), "output kept in memory for each stream (1M)"),
	CLI_ARG("overflow", AT(overflow),
		"when that is full: drop and count, let the command wait for a reader (coop logs "
		"-f, attach), or use a file"),
	CLI_ARG("on_output_quota", AT(on_output_quota),
		"with --overflow spool: when that file is full"),
	{"merge", 0, CLI_FLAG, AT(merge), NULL, NULL, "stderr into stdout, one pipe"},
	CLI_ARG("on_exit", AT(on_exit), "what becomes of what it leaves running (keep)"),
	{"lease", 0, CLI_CHOICE, AT(lease), NULL, "ephemeral|awaited|persistent",
	 "ephemeral: ends with this coop run (default); awaited: goes on, until its session ends "
	 "(default with -d); persistent: goes on after that, has a lifetime and an idle limit, and "
	 "needs a grant"},
	CLI_ARG("session", AT(session),
		"the session that it ends with (coop session new makes one)"),
	CLI_ARG("call_id", AT(call_id),
		"the call that it belongs to: coop cancel ends all that carry it"),
	{"text", 0, CLI_FLAG, AT(text), NULL, NULL,
	 "with --json: output as text, with U+FFFD for what is not UTF-8, never as base64"},
	{"shell", 0, CLI_FLAG, AT(shell), NULL, NULL, "the words are a shell command line"},
	CLI_ARG("shell", AT(use_shell), "the same, with this shell (coop shells lists them)"),
	CLI_ARG("login", AT(login), "with --shell: a login shell"),
	CLI_ARG("cols", AT(cols), "with -t: width of its terminal (yours)"),
	CLI_ARG("rows", AT(rows), "with -t: height of its terminal (yours)"),
	CLI_SANDBOX_ROWS(struct cli_run),
	CLI_ARG("file_injections", AT(inject),
		"give it a copy of this file, read-only and gone with it: the variable holds its "
		"path, or it is in that place; may be repeated"),
	{0},
};

bool cli_run_forwards_stdin(const struct cli_run *run)
{
	if (run->no_stdin || !cli_stdin_useful())
		return false;
	return run->interactive || run->terminal || !isatty(STDIN_FILENO);
}

static int add_env(const struct cli_run *run, json_t *args, struct coop_error *error)
{
	if (!run->env.count)
		return 0;
	json_t *env = json_object();
	(void)json_object_set_new(args, "env", env);
	for (size_t i = 0; i < run->env.count; i++) {
		char name[CLI_ENV_NAME_MAX];
		const char *value;
		if (cli_parse_env(run->env.items[i], name, &value) < 0) {
			/* Only up to the "=": a value may be a secret. */
			cli_error(error, "invalid_input", "--env %.*s: expected NAME=VALUE or NAME",
				  (int)strcspn(run->env.items[i], "="), run->env.items[i]);
			return -EINVAL;
		}
		if (json_object_get(env, name)) {
			cli_error(error, "invalid_input", "--env %s: given twice", name);
			return -EINVAL;
		}
		if (!value && !(value = getenv(name))) {
			cli_error(error, "invalid_input",
				  "--env %s: it is not set here (--env %s=VALUE sets it)", name,
				  name);
			return -EINVAL;
		}
		if (json_object_set_new(env, name, json_string(value)) < 0) {
			cli_error(error, "invalid_input", "--env %s: its value is not valid UTF-8",
				  name);
			return -EILSEQ;
		}
	}
	return 0;
}

static int add_command(const struct cli_run *run, size_t count, char **words, json_t *args,
		       struct coop_error *error)
{
	if (run->shell || run->use_shell) {
		(void)json_object_set_new(args, "mode", json_string("shell"));
		if (json_object_set_new(args, "command", cli_place_words(count, words)) == 0)
			return 0;
		cli_error(error, "invalid_input", "the command is not valid UTF-8");
		return -EILSEQ;
	}
	json_t *argv = json_array();
	(void)json_object_set_new(args, "argv", argv);
	for (size_t i = 0; i < count; i++)
		if (json_array_append_new(argv, json_string(words[i])) < 0) {
			cli_error(error, "invalid_input",
				  "word %zu of the command is not valid UTF-8", i + 1);
			return -EILSEQ;
		}
	return 0;
}

static void add_terminal(const struct cli_run *run, json_t *args)
{
	unsigned cols = 0, rows = 0;
	(void)cli_terminal_size(&cols, &rows);
	const uint64_t width = run->cols.set ? run->cols.value : cols,
		       height = run->rows.set ? run->rows.value : rows;
	(void)json_object_set_new(args, "kind", json_string("pty"));
	if (width || run->cols.set)
		(void)json_object_set_new(args, "cols", json_integer((json_int_t)width));
	if (height || run->rows.set)
		(void)json_object_set_new(args, "rows", json_integer((json_int_t)height));
}

/* What depends on whether somebody stays here for it. */
static void add_manner(const struct cli_run *run, json_t *args)
{
	const char *lease = run->lease ? run->lease : run->detach ? "awaited" : "ephemeral";
	const bool stays = !run->detach && strcmp(lease, "ephemeral") == 0;
	(void)json_object_set_new(args, "lease", json_string(lease));
	if (run->terminal)
		add_terminal(run, args);
	else if (run->detach ? run->interactive : cli_run_forwards_stdin(run))
		(void)json_object_set_new(args, "stdin", json_string("pipe"));
	/* Every byte is to arrive on our stdout, however slow its reader is: the command waits, as
	 * it would in a pipe. Not so one that may outlive us: it must not wait for a reader that
	 * has gone. */
	if (stays && !run->overflow)
		(void)json_object_set_new(args, "overflow", json_string("backpressure"));
	if (run->merge)
		(void)json_object_set_new(args, "stderr", json_string("merged"));
}

json_t *cli_run_args(const struct cli *cli, size_t count, char **words, struct coop_buf *data,
		     struct coop_error *error)
{
	const struct cli_run *run = cli->settings;
	json_t *args = json_object();
	const char *bad = NULL;
	if (cli_options_fields(cli->options, run, args, &bad) < 0)
		cli_error(error, "invalid_input", "--%s: not valid UTF-8", bad);
	else if (add_env(run, args, error) == 0 && cli_place_cwd(run->cwd, args, error) == 0 &&
		 cli_sandbox_args(cli, &run->sandbox, args, error) == 0 &&
		 cli_inject_args(&run->inject, args, data, error) == 0 &&
		 add_command(run, count, words, args, error) == 0) {
		add_manner(run, args);
		return args;
	}
	json_decref(args);
	return NULL;
}
