#include "doors/cli/verbs.h"

static const struct cli_verb *const subs[] = {
	&cli_verb_policy_check,
	NULL,
};

const struct cli_verb cli_verb_policy = {
	.name = "policy",
	.synopsis = "VERB …",
	.summary = "What may be run: check",
	.text = "The operator's rules stand in coop.conf, those of an agent are set by coop agent "
		"set. "
		"They are an early filter over the words of\n"
		"a command, and contain nothing.",
	.max_operands = CLI_ANY_NUMBER,
	.no_keeper = true,
	.subs = subs,
	.run = cli_group_run,
};
