#include "doors/cli/cli.h"
#include "doors/cli/receipt.h"
#include "doors/cli/verbs.h"

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	return cli_each(cli, "kill", json_object(), count, operands, cli_receipt_show);
}

const struct cli_verb cli_verb_kill = {
	.name = "kill",
	.synopsis = "ID…",
	.summary = "Kill processes with all their descendants, and say who died",
	.text = "Sends SIGKILL to the whole tree, also to what left its session or group, and "
		"answers when none is left.\n"
		"Of a process that has ended it kills what it left running.",
	.min_operands = 1,
	.max_operands = CLI_ANY_NUMBER,
	.failure = CLI_FAILED,
	.usage = CLI_USAGE,
	.run = run,
};
