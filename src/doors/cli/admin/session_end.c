#include <stdio.h>

#include "doors/cli/cli.h"
#include "doors/cli/receipt.h"
#include "doors/cli/record.h"
#include "doors/cli/verbs.h"

struct settings {
	struct cli_number grace;
};

static bool show(const struct cli *cli, const char *id, const json_t *result)
{
	const long long ended = (long long)cli_number(result, "ended");
	if (!cli->json)
		(void)printf("%s has ended, with %lld %s\n", id, ended,
			     ended == 1 ? "process" : "processes");
	return cli_none_alive(id, result);
}

static const struct cli_option options[] = {
	CLI_ARG("grace_ms", offsetof(struct settings, grace),
		"time between SIGTERM and SIGKILL (5s, at most 30s)"),
	{0},
};

const struct cli_verb cli_verb_session_end = {
	.name = "session end",
	.synopsis = "ID… [--grace DURATION]",
	.summary = "End sessions: their processes are stopped, persistent ones stay",
	.operation = &coop_operation_session_end,
	.options = options,
	.settings_size = sizeof(struct settings),
	.min_operands = 1,
	.max_operands = CLI_ANY_NUMBER,
	.show = show,
};
