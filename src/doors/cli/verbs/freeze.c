/* freeze and thaw: a whole tree stands still, and goes on. */
#include <stdio.h>

#include "doors/cli/cli.h"
#include "doors/cli/record.h"
#include "doors/cli/verbs.h"

static bool show(const struct cli *cli, const char *id, const json_t *result)
{
	const char *own = cli_text(result, "id");
	if (!cli->json)
		(void)printf("%s: %s\n", *own ? own : id,
			     json_is_true(json_object_get(result, "frozen")) ? "frozen"
									     : "goes on");
	return true;
}

const struct cli_verb cli_verb_freeze = {
	.name = "freeze",
	.synopsis = "ID…",
	.summary = "Let processes stand still, with all that they started",
	.text = "No processor time goes to any of them until coop thaw, and none of them can tell. "
		"Its times go on: a timeout still ends it.\n"
		"Where the host has no freezer it is refused; coop doctor tells.",
	.min_operands = 1,
	.max_operands = CLI_ANY_NUMBER,
	.operation = &coop_operation_freeze,
	.show = show,
};

const struct cli_verb cli_verb_thaw = {
	.name = "thaw",
	.synopsis = "ID…",
	.summary = "Let processes that were frozen go on",
	.min_operands = 1,
	.max_operands = CLI_ANY_NUMBER,
	.operation = &coop_operation_thaw,
	.show = show,
};
