#include "doors/cli/cli.h"
#include "doors/cli/options.h"
#include "doors/cli/receipt.h"
#include "doors/cli/verbs.h"

struct settings {
	struct cli_number grace;
};

static const struct cli_option options[] = {
	CLI_ARG("grace_ms", offsetof(struct settings, grace),
		"time between SIGTERM and SIGKILL (5s, at most 30s)"),
	{0},
};

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	json_t *args = json_object();
	const char *bad;
	(void)cli_options_fields(cli->options, settings, args, &bad);
	return cli_each(cli, "stop", args, count, operands, cli_receipt_show);
}

const struct cli_verb cli_verb_stop = {
	.name = "stop",
	.synopsis = "ID… [--grace DURATION]",
	.summary = "End processes: SIGTERM, a grace, then kill",
	.operation = &coop_operation_stop,
	.options = options,
	.settings_size = sizeof(struct settings),
	.min_operands = 1,
	.max_operands = CLI_ANY_NUMBER,
	.failure = CLI_FAILED,
	.usage = CLI_USAGE,
	.run = run,
};
