#include "run.h"

#include <stdio.h>
#include <string.h>

#include "record.h"
#include "verbs.h"

int cli_run_refused(const struct coop_error *error)
{
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

static int run_detached(struct cli *cli, json_t *args)
{
	struct coop_error error;
	json_t *result;
	if (cli_call(cli, "spawn", args, &result, &error) < 0) {
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

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	const struct cli_run *s = settings;
	struct coop_error error;
	cli->lines = !s->detach;
	if (s->text && (!cli->json || s->detach)) {
		cli_error(&error, "usage", "run: --text goes with --json, in the foreground");
		(void)cli_fail(cli, NULL, &error);
		return cli->verb->usage;
	}
	json_t *args = cli_run_args(s, count, operands, &error);
	if (!args || cli_open(cli, CLI_START_KEEPER, &error) < 0) {
		json_decref(args);
		return cli_fail(cli, NULL, &error);
	}
	return s->detach ? run_detached(cli, args) : cli_run_foreground(cli, s, args);
}

const struct cli_verb cli_verb_run = {
	.name = "run",
	.synopsis = "[OPTION…] [--] PROGRAM [ARG…]",
	.summary = "Run a command",
	.text = "Its output comes out here byte by byte, signals and stdin go to it, and its exit "
		"code is returned: 128+n for\n"
		"signal n, 124 if its time was up, 125 if coop itself failed, 126 if it cannot be "
		"executed, 127 if it was not\n"
		"found. Ctrl-C reaches the command; a second one within 2 s kills it with all that "
		"it started.\n"
		"With -d it goes on in the background: see coop ps, logs, wait, attach, stop.\n"
		"With --json: lines {\"type\": \"started\" | \"output\" | \"gap\" | \"exit\" | "
		"\"error\", …}; coop help logs tells about\n"
		"\"output\".",
	.options = cli_run_options,
	.settings_size = sizeof(struct cli_run),
	.operands = CLI_OPERANDS_LAST,
	.min_operands = 1,
	.max_operands = CLI_ANY_NUMBER,
	.failure = CLI_OWN_FAILURE,
	.usage = CLI_OWN_FAILURE,
	.run = run,
};
