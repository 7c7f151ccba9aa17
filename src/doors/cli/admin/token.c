#include "doors/cli/verbs.h"

static const struct cli_verb *const subs[] = {
	&cli_verb_token_new,
	&cli_verb_token_ls,
	&cli_verb_token_revoke,
	NULL,
};

const struct cli_verb cli_verb_token = {
	.name = "token",
	.synopsis = "VERB …",
	.summary = "Tokens, by which programs act as an agent: new, ls, revoke",
	.text = "A program that has a token in COOP_TOKEN, or is given --token-file, acts as the "
		"token's agent.",
	.max_operands = CLI_ANY_NUMBER,
	.no_keeper = true,
	.subs = subs,
	.run = cli_group_run,
};
