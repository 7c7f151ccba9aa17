#include <stdio.h>
#include <string.h>

#include "doors/cli/cli.h"
#include "doors/cli/record.h"
#include "doors/cli/verbs.h"

static bool show(const struct cli *cli, const char *id, const json_t *result)
{
	size_t i;
	json_t *shell;
	if (cli->json)
		return true;
	(void)printf("%-8s %-24s %s\n", "ID", "PATH", "LABEL");
	json_array_foreach(json_object_get(result, "shells"), i, shell)
	{
		if (!json_is_true(json_object_get(shell, "available")))
			continue;
		const bool usual = strcmp(cli_text(shell, "id"), cli_text(result, "default")) == 0;
		(void)printf("%-8s %-24s %s%s\n", cli_text(shell, "id"), cli_text(shell, "path"),
			     cli_text(shell, "label"), usual ? " (default)" : "");
	}
	return true;
}

const struct cli_verb cli_verb_shells = {
	.name = "shells",
	.synopsis = "",
	.summary = "List the shells that coop run --shell can use",
	.operation = &coop_operation_list_shells,
	.show = show,
};
