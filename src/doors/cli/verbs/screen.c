#include "doors/cli/door.h"
#include "doors/cli/verbs.h"

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	const struct cli_door here = {.no_workspace = true};
	const char *plain[] = {"--screen", operands[0], NULL};
	const char *json[] = {"--screen", "--json", operands[0], NULL};
	(void)settings;
	(void)count;
	return cli_door_exec(cli, "tool", &here, cli->json ? json : plain);
}

const struct cli_verb cli_verb_screen = {
	.name = "screen",
	.synopsis = "ID",
	.summary = "Show the screen of a process's terminal as text, as a person would see it now",
	.text = "With --json also its size and where the cursor stands, counted from 0.",
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
