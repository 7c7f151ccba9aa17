#include <stdio.h>

#include "doors/cli/cli.h"
#include "doors/cli/receipt.h"
#include "doors/cli/record.h"
#include "doors/cli/verbs.h"

struct settings {
	const char *principal;
	struct cli_number grace;
};

static bool show(const struct cli *cli, const char *id, const json_t *result)
{
	const long long agents = (long long)cli_number(result, "agents"),
			ended = (long long)cli_number(result, "ended");
	if (!cli->json)
		(void)printf("%lld %s removed, %lld %s ended\n", agents,
			     agents == 1 ? "agent" : "agents", ended,
			     ended == 1 ? "process" : "processes");
	return cli_none_alive(NULL, result);
}

static const struct cli_option options[] = {
	CLI_ARG("grace_ms", offsetof(struct settings, grace),
		"time between SIGTERM and SIGKILL for what they run (0, at most 30s)"),
	CLI_ARG("principal", offsetof(struct settings, principal), "whose agent (yours)"),
	{0},
};

const struct cli_verb cli_verb_agent_rm = {
	.name = "agent rm",
	.synopsis = "AGENT [--grace DURATION]",
	.summary = "Remove an agent, all below it, their tokens and their processes",
	.operation = &coop_operation_agent_remove,
	.options = options,
	.settings_size = sizeof(struct settings),
	.min_operands = 1,
	.max_operands = 1,
	.operand = "agent",
	.show = show,
};
