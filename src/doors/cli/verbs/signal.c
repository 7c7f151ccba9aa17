#include <stdio.h>
#include <string.h>

#include "doors/cli/cli.h"
#include "doors/cli/parse.h"
#include "doors/cli/record.h"
#include "doors/cli/verbs.h"

struct settings {
	const char *target;
};

static bool show(const struct cli *cli, const char *id, const json_t *result)
{
	/* On a finished process nothing is sent, which is no error; but somebody who reads would
	 * like to know. */
	if (!json_is_true(json_object_get(result, "sent")))
		cli_say("%s has ended (%s): nothing was sent", id, cli_text(result, "state"));
	return true;
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	const struct settings *s = settings;
	uint64_t number;
	json_t *signal = cli_parse_count(operands[1], &number) == 0
				 ? json_integer((json_int_t)number)
				 : json_string(operands[1]);
	if (!signal)
		signal = json_string("?");
	json_t *args = json_pack("{s:o}", "signal", signal);
	if (s->target)
		(void)json_object_set_new(args, "target", json_string(s->target));
	return cli_each(cli, "signal", args, 1, operands, show);
}

static const struct cli_option options[] = {
	CLI_ARG("target", offsetof(struct settings, target),
		"who gets it: its process group (default), the leader alone, or the whole tree",
		.argument = "group|process|tree"),
	{0},
};

const struct cli_verb cli_verb_signal = {
	.name = "signal",
	.synopsis = "ID SIGNAL",
	.summary = "Send a signal",
	.text = "SIGNAL is a name in any letter case, with or without SIG, or a number.",
	.operation = &coop_operation_signal,
	.options = options,
	.settings_size = sizeof(struct settings),
	.min_operands = 2,
	.max_operands = 2,
	.run = run,
};
