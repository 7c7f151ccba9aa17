#include <errno.h>
#include <stdio.h>

#include "doors/cli/cli.h"
#include "doors/cli/record.h"
#include "doors/cli/verbs.h"

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
	struct coop_error error;
	int r = cli_open(cli, CLI_ONLY_RUNNING, &error);
	if (r == -ECONNREFUSED)
		return cli_nothing_to_do(cli, json_pack("{s:i}", "released", 0),
					 "no keeper is running: 0 finished processes forgotten");
	return r < 0 ? cli_fail(cli, NULL, &error)
		     : cli_once(cli, CLI_ONLY_RUNNING, "gc", json_object(), show);
}

const struct cli_verb cli_verb_gc = {
	.name = "gc",
	.synopsis = "",
	.summary = "Forget all finished processes and their output",
	.run = run,
};
