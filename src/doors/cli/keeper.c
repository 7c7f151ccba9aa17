#include <errno.h>
#include <string.h>

#include "sibling.h"
#include "verbs.h"

/* `operands` lies in main's argv, so that there is a place in front of it for the program's name. */
static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	if (count == 1 && (strcmp(operands[0], "--help") == 0 || strcmp(operands[0], "-h") == 0)) {
		cli_help_verb(cli->verb);
		return CLI_OK;
	}
	int r = cli_sibling_exec("keeper", operands - 1);
	struct coop_error error;
	cli_error(&error, "unreachable", "cannot run coop-keeper: %s%s", strerror(-r),
		  r == -ENOENT ? " (it belongs beside coop, in ../libexec/coop or in PATH)" : "");
	return cli_fail(cli, NULL, &error);
}

const struct cli_verb cli_verb_keeper = {
	.name = "keeper",
	.synopsis = "[--set NAME=VALUE]…",
	.summary = "Run the keeper here, in the foreground, with its log on stderr",
	.text = "The words after it are those of coop-keeper. --set NAME=VALUE changes a setting, "
		"such as max_running;\n"
		"coop info shows all of them. A keeper that is started on demand takes the same "
		"from COOP_SET.",
	.operands = CLI_OPERANDS_ALL,
	.max_operands = CLI_ANY_NUMBER,
	.failure = CLI_FAILED,
	.usage = CLI_USAGE,
	.run = run,
};
