#include "doors/cli/cli.h"
#include "doors/cli/door.h"
#include "doors/cli/verbs.h"

struct settings {
	struct cli_door door;
	bool list;
};

static const struct cli_option options[] = {
	CLI_DOOR_ROWS(struct settings),
	{"list", 0, CLI_FLAG, offsetof(struct settings, list), NULL, NULL,
	 "only say which tools there are; with --json as a model sees them"},
	{0},
};

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	const struct settings *s = settings;
	const char *more[] = {"--list", cli->json ? "--json" : NULL, NULL};
	struct cli_door nowhere = {.no_workspace = true, .private_keeper = true};
	if (s->list && count)
		return cli_misuse(cli, "--list goes alone");
	if (s->list || count == 0)
		return cli_door_exec(cli, "tool", &nowhere, more);
	const char *words[] = {operands[0], count > 1 ? operands[1] : NULL, NULL};
	return cli_door_exec(cli, "tool", &s->door, words);
}

const struct cli_verb cli_verb_tool = {
	.name = "tool",
	.synopsis = "[NAME [JSON]]",
	.summary = "Call one of the tools that language models get",
	.text = "JSON is the object of arguments; - or none reads it from stdin, if that is no "
		"terminal. Prints the result as JSON.\n"
		"Exit code: 0 done, 1 done and the answer is no (a command failed, nothing "
		"matched), "
		"2 refused.\n"
		"Without a name: which tools there are.",
	.operation = &coop_operation_spawn,
	.options = options,
	.settings_size = sizeof(struct settings),
	.operands = CLI_OPERANDS_LAST,
	.max_operands = 2,
	.failure = CLI_USAGE,
	.run = run,
};
