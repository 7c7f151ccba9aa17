#include <errno.h>
#include <stdio.h>

#include "doors/cli/cli.h"
#include "doors/cli/record.h"
#include "doors/cli/verbs.h"

static bool show(const struct cli *cli, const char *id, const json_t *result)
{
	const char *path = cli_text(result, "path");
	if (!cli->json)
		(void)printf("%s%s\n", *path ? "read " : "there is no coop.conf to read", path);
	return true;
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	struct coop_error error;
	int r = cli_open(cli, CLI_ONLY_RUNNING, &error);
	if (r == -ECONNREFUSED)
		cli_error(&error, "unreachable",
			  "no keeper is running; the next one reads coop.conf when it starts");
	return r < 0 ? cli_fail(cli, NULL, &error)
		     : cli_once(cli, CLI_ONLY_RUNNING, "reload", json_object(), show);
}

const struct cli_verb cli_verb_reload = {
	.name = "reload",
	.synopsis = "",
	.summary = "Let the keeper read coop.conf again",
	.text = "A file with a fault changes nothing: what held before stays in force, and the "
		"line "
		"is named.",
	.run = run,
};
