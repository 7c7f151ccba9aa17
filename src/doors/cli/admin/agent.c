#include "doors/cli/verbs.h"

static const struct cli_verb *const subs[] = {
	&cli_verb_agent_add, &cli_verb_agent_ls, &cli_verb_agent_show,
	&cli_verb_agent_set, &cli_verb_agent_rm, NULL,
};

const struct cli_verb cli_verb_agent = {
	.name = "agent",
	.synopsis = "VERB …",
	.summary = "Agents: add, ls, show, set, rm",
	.text = "Every process belongs to an agent. Without a token you are main; an agent sees "
		"its "
		"own processes and those of agents below\n"
		"it, which have limits and a policy of their own. AGENT is a path (main/tester) or "
		"what stands below you (tester).",
	.max_operands = CLI_ANY_NUMBER,
	.no_keeper = true,
	.subs = subs,
	.run = cli_group_run,
};
