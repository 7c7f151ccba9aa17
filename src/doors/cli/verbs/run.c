#include "doors/cli/verbs/run.h"

#include <stdio.h>
#include <string.h>

#include "doors/cli/cli.h"
#include "doors/cli/place.h"
#include "doors/cli/record.h"
#include "doors/cli/verbs.h"
#include "doors/cli/workspace.h"

int cli_run_refused(const struct coop_error *error)
{
	/* Policy blocks it, or the agent may not start anything. */
	if (strcmp(error->code, "permission_denied") == 0)
		return CLI_CANNOT_EXECUTE;
	if (strcmp(error->code, "spawn_failed") != 0)
		return CLI_OWN_FAILURE;
	json_t *details = json_loads(error->details, 0, NULL);
	const bool exec = strcmp(cli_text(details, "step"), "exec") == 0;
	const bool missing = strcmp(cli_text(details, "errno"), "ENOENT") == 0;
	json_decref(details);
	if (!exec)
		return CLI_OWN_FAILURE;
	return missing ? CLI_NOT_FOUND : CLI_CANNOT_EXECUTE;
}

static int run_detached(struct cli *cli, json_t *args, const struct coop_buf *data)
{
	struct coop_error error;
	json_t *result;
	if (cli_call_data(cli, "spawn", args, coop_buf_front(data), coop_buf_size(data), &result,
			  &error) < 0) {
		(void)cli_fail(cli, NULL, &error);
		return cli_run_refused(&error);
	}
	const json_t *record = json_object_get(result, "process");
	if (cli->json)
		cli_print_json(record);
	else
		(void)puts(cli_text(record, "id"));
	json_decref(result);
	return CLI_OK;
}

/* Options that do nothing, or nothing sensible, without or with another: what is typed in vain is
 * refused, not ignored. */
static const char *find_misuse(const struct cli *cli, const struct cli_run *s)
{
	const struct {
		bool wrong;
		const char *problem;
	} rules[] = {
		{s->text && (!cli->json || s->detach),
		 "--text goes with --json, in the foreground"},
		{s->idle_timeout.set && !s->detach,
		 "--idle-timeout goes with -d: it does not run while somebody follows the output, "
		 "as a run in the foreground does"},
		{s->timeout_grace.set && !s->timeout.set, "--timeout-grace goes with --timeout"},
		{s->cols.set && !s->terminal, "--cols goes with -t"},
		{s->rows.set && !s->terminal, "--rows goes with -t"},
		{s->merge && s->terminal,
		 "--merge goes without -t: a terminal has one output anyway"},
		{s->login && !s->shell && !s->use_shell, "--login goes with --shell"},
		{s->interactive && s->no_stdin, "-i and -n contradict each other"},
		{s->on_output_quota && (!s->overflow || strcmp(s->overflow, "spool") != 0),
		 "--on-output-quota goes with --overflow spool"},
	};
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].wrong)
			return rules[i].problem;
	return NULL;
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	const struct cli_run *s = settings;
	struct coop_error error;
	cli->lines = !s->detach;
	const char *problem = find_misuse(cli, s);
	if (problem)
		return cli_misuse(cli, "%s", problem);
	const struct cli_option *zero = cli_sandbox_zero(cli->options, s);
	if (zero)
		return cli_misuse(cli, "--%s 0: must be more than 0", zero->name);
	struct coop_buf data = {0};
	json_t *args = cli_run_args(cli, count, operands, &data, &error);
	if (!args || cli_open(cli, CLI_START_KEEPER, &error) < 0) {
		json_decref(args);
		coop_buf_clear(&data);
		return cli_fail(cli, NULL, &error);
	}
	(void)json_object_set_new(args, "base_env", cli_place_env(cli->coop));
	cli_workspace_add(cli, &s->sandbox, s->cwd, NULL, args);
	int code = s->detach ? run_detached(cli, args, &data)
			     : cli_run_foreground(cli, s, args, &data);
	coop_buf_clear(&data);
	return code;
}

const struct cli_verb cli_verb_run = {
	.name = "run",
	.synopsis = "[OPTION…] [--] PROGRAM [ARG…]",
	.summary = "Run a command",
	.text = "Its output comes out here byte by byte, signals and stdin go to it, and its exit "
		"code is returned: 128+n for\n"
		"signal n, 124 if its time was up, 125 if coop itself failed, 126 if it cannot be "
		"executed or policy blocks it,\n"
		"127 if it was not found. Ctrl-C reaches the command; a second one within 2 s "
		"kills it with all that "
		"it started;\n"
		"a third one leaves at once, should the keeper not answer. With -t, where Ctrl-C "
		"is the command's own key: Ctrl-] k\n"
		"kills it, Ctrl-] d leaves it running (its id is printed), Ctrl-] twice sends one "
		"Ctrl-].\n"
		"With -d it goes on in the background: see coop ps, logs, wait, attach, stop.\n"
		"It is confined: it can read what you can, less your credentials, change only the "
		"folder it runs in (--workspace)\n"
		"and a /tmp of its own, and reach no network but its session's own; coop status "
		"tells what holds.\n"
		"With --json: lines {\"type\": \"started\" | \"output\" | \"gap\" | \"exit\" | "
		"\"error\", …}; coop help logs tells about\n"
		"\"output\".",
	.operation = &coop_operation_spawn,
	.options = cli_run_options,
	.settings_size = sizeof(struct cli_run),
	.operands = CLI_OPERANDS_LAST,
	.min_operands = 1,
	.max_operands = CLI_ANY_NUMBER,
	.failure = CLI_OWN_FAILURE,
	.usage = CLI_OWN_FAILURE,
	.run = run,
};
