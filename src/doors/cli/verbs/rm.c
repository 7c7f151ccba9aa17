#include "doors/cli/cli.h"
#include "doors/cli/receipt.h"
#include "doors/cli/verbs.h"

struct settings {
	bool keep_running;
};

/* `released: false` without a kill is the answer for what is not there. */
static bool show(const struct cli *cli, const char *id, const json_t *result)
{
	const json_t *receipt = json_object_get(result, "kill");
	const bool released = json_is_true(json_object_get(result, "released"));
	if (json_is_object(receipt))
		return cli_receipt_show_released(cli, id, released, receipt);
	if (!released) {
		/* The result is what --json prints; in words it is the error of the other verbs. */
		const struct cli quiet = {.verb = cli->verb, .options = cli->options};
		struct coop_error error;
		cli_error(&error, "no_such_process", "there is no such process");
		(void)cli_fail(&quiet, id, &error);
	}
	return released;
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	const struct settings *s = settings;
	json_t *args = json_pack("{s:s}", "if_running", s->keep_running ? "refuse" : "kill");
	return cli_each(cli, "release", args, count, operands, show);
}

static const struct cli_option options[] = {
	{"if-ended", 0, CLI_FLAG, offsetof(struct settings, keep_running), NULL, NULL,
	 "refuse to touch a process that still runs"},
	{0},
};

const struct cli_verb cli_verb_rm = {
	.name = "rm",
	.synopsis = "ID… [--if-ended]",
	.summary = "Forget processes and their output; what still runs is killed first",
	.options = options,
	.settings_size = sizeof(struct settings),
	.min_operands = 1,
	.max_operands = CLI_ANY_NUMBER,
	.run = run,
};
