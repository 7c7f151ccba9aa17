#include <errno.h>
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

/* Without a keeper nothing is remembered; forgetting must not start one. */
static int nothing_to_do(const struct cli *cli)
{
	json_t *value = json_pack("{s:i}", "released", 0);
	if (cli->json)
		cli_print_json(value);
	else
		(void)printf("no keeper is running: 0 finished processes forgotten\n");
	json_decref(value);
	return CLI_OK;
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	struct coop_error error;
	int r = cli_open(cli, CLI_ONLY_RUNNING, &error);
	if (r == -ECONNREFUSED)
		return nothing_to_do(cli);
	return r < 0 ? cli_fail(cli, NULL, &error)
		     : cli_once(cli, CLI_ONLY_RUNNING, "gc", json_object(), show);
}

const struct cli_verb cli_verb_gc = {
	.name = "gc",
	.synopsis = "",
	.summary = "Forget all finished processes and their output",
	.failure = CLI_FAILED,
	.usage = CLI_USAGE,
	.run = run,
};
