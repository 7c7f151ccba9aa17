#include "doors/cli/verbs.h"

static const struct cli_verb *const subs[] = {
	&cli_verb_session_new,
	&cli_verb_session_end,
	&cli_verb_session_ls,
	NULL,
};

const struct cli_verb cli_verb_session = {
	.name = "session",
	.synopsis = "VERB …",
	.summary = "Sessions, which end their processes together: new, end, ls",
	.text = "coop run --session ID starts a command in one. Without it a command is in its "
		"agent's default session, which does not end\n"
		"while the keeper runs.",
	.max_operands = CLI_ANY_NUMBER,
	.no_keeper = true,
	.subs = subs,
	.run = cli_group_run,
};
