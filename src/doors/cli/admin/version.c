#include <stdio.h>

#include "doors/cli/cli.h"
#include "doors/cli/verbs.h"

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	if (!cli->json) {
		(void)puts("coop " COOP_VERSION);
		return CLI_OK;
	}
	json_t *value = json_pack("{s:s}", "version", COOP_VERSION);
	cli_print_json(value);
	json_decref(value);
	return CLI_OK;
}

const struct cli_verb cli_verb_version = {
	.name = "version",
	.synopsis = "",
	.summary = "Print the version of this program (also coop --version)",
	.no_keeper = true,
	.run = run,
};
