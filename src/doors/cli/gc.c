#include <stdio.h>

#include "record.h"
#include "verbs.h"

static bool show(const struct cli *cli, const char *id, const json_t *result)
{
	if (!cli->json)
		(void)printf("%lld finished %s forgotten\n",
			     (long long)cli_number(result, "released"),
			     cli_number(result, "released") == 1 ? "process" : "processes");
	return true;
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	return cli_once(cli, "gc", json_object(), show);
}

const struct cli_verb cli_verb_gc = {
	.name = "gc",
	.synopsis = "",
	.summary = "Forget all finished processes and their output",
	.failure = CLI_FAILED,
	.usage = CLI_USAGE,
	.run = run,
};
