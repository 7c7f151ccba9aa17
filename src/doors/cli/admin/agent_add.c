#include <stdio.h>

#include "doors/cli/admin/agent_args.h"
#include "doors/cli/cli.h"
#include "doors/cli/sandbox_args.h"
#include "doors/cli/verbs.h"

struct settings {
	struct cli_agent agent;
	const char *parent;
	bool folder;
};

static const struct cli_option options[] = {
	{"parent", 0, CLI_TEXT, offsetof(struct settings, parent), NULL, "AGENT",
	 "the agent below which it stands (the one that you are)"},
	CLI_ARG("principal", offsetof(struct settings, agent.principal),
		"whose tree of agents (yours); the agent main of a new name makes a new tree"),
	CLI_ARG("folder", offsetof(struct settings, folder),
		"it gets a folder of its own to work in, which is deleted with it; instead of "
		"--workspace"),
	CLI_AGENT_ROWS,
	{0},
};

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	const struct settings *s = settings;
	struct coop_error error;
	const struct cli_option *zero = cli_sandbox_zero(cli->options, s);
	if (zero)
		return cli_misuse(cli, "--%s 0: must be more than 0", zero->name);
	json_t *path = s->parent ? json_sprintf("%s/%s", s->parent, operands[0])
				 : json_string(operands[0]);
	json_t *args = json_pack("{s:O}", "agent", path);
	int code;
	if (!args)
		cli_error(&error, "invalid_input", "the agent's name is not valid UTF-8");
	if (!args || cli_agent_args(cli, &s->agent, args, &error) < 0) {
		json_decref(args);
		code = cli_fail(cli, NULL, &error);
	} else {
		cli->about = json_string_value(path);
		code = cli_once(cli, CLI_START_KEEPER, "agent_add", args, cli_agent_show);
	}
	json_decref(path);
	return code;
}

const struct cli_verb cli_verb_agent_add = {
	.name = "agent add",
	.synopsis = "NAME [--parent AGENT] [OPTION…]",
	.summary = "Add an agent",
	.text = "NAME has letters, digits, \".\", \"_\" and \"-\". Limits of an agent count for it "
		"together with all below it, and can only be as\n"
		"wide as those of the one above it. coop token new NAME then makes a token with "
		"which programs act as it.",
	.operation = &coop_operation_agent_add,
	.options = options,
	.settings_size = sizeof(struct settings),
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
