#include <errno.h>
#include <stdio.h>

#include "doors/cli/cli.h"
#include "doors/cli/receipt.h"
#include "doors/cli/verbs.h"

static bool show(const struct cli *cli, const char *id, const json_t *result)
{
	const json_t *ids = json_object_get(result, "cancelled");
	size_t i;
	json_t *item;
	if (!cli->json) {
		if (json_array_size(ids) == 0)
			(void)printf("nothing of yours that runs carries %s\n", id ? id : "it");
		json_array_foreach((json_t *)ids, i, item)(void)
			printf("%s: cancelled\n", json_string_value(item));
	}
	return cli_none_alive(NULL, result);
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	struct coop_error error;
	int r = cli_open(cli, CLI_ONLY_RUNNING, &error);
	if (r == -ECONNREFUSED)
		return cli_nothing_to_do(cli, json_pack("{s:[], s:i}", "cancelled", "survivors", 0),
					 "no keeper is running: nothing to cancel");
	if (r < 0)
		return cli_fail(cli, NULL, &error);
	json_t *ids = json_array(), *args = json_pack("{s:O}", "call_ids", ids);
	for (size_t i = 0; i < count && args; i++)
		if (json_array_append_new(ids, json_string(operands[i])) < 0) {
			json_decref(args);
			args = NULL;
		}
	json_decref(ids);
	return cli_once(cli, CLI_ONLY_RUNNING, "cancel", args, show);
}

const struct cli_verb cli_verb_cancel = {
	.name = "cancel",
	.synopsis = "CALL_ID…",
	.summary = "End what was started with coop run --call-id",
	.text = "All of yours that runs and carries one of the ids gets SIGINT and 2 s, then it is "
		"killed. That nothing carries them is no\n"
		"failure.",
	.min_operands = 1,
	.max_operands = CLI_ANY_NUMBER,
	.run = run,
};
