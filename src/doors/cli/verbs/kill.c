#include "doors/cli/cli.h"
#include "doors/cli/receipt.h"
#include "doors/cli/verbs.h"

const struct cli_verb cli_verb_kill = {
	.name = "kill",
	.synopsis = "ID…",
	.summary = "Kill processes with all their descendants, and say who died",
	.text = "Sends SIGKILL to the whole tree, also to what left its session or group, and "
		"answers when none is left.\n"
		"Of a process that has ended it kills what it left running.",
	.min_operands = 1,
	.max_operands = CLI_ANY_NUMBER,
	.operation = &coop_operation_kill,
	.show = cli_receipt_show,
};
