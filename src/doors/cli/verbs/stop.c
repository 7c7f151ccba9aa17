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

const struct cli_verb cli_verb_stop = {
	.name = "stop",
	.synopsis = "ID… [--grace DURATION]",
	.summary = "End processes: SIGTERM, a grace, then kill",
	.operation = &coop_operation_stop,
	.options = options,
	.settings_size = sizeof(struct settings),
	.min_operands = 1,
	.max_operands = CLI_ANY_NUMBER,
	.show = cli_receipt_show,
};
