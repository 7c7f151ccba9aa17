#include <stdio.h>

#include "doors/cli/cli.h"
#include "doors/cli/record.h"
#include "doors/cli/verbs.h"

struct settings {
	const char *label;
	struct cli_number lifetime;
};

static bool show(const struct cli *cli, const char *id, const json_t *result)
{
	if (!cli->json)
		(void)puts(cli_text(json_object_get(result, "session"), "id"));
	return true;
}

static const struct cli_option options[] = {
	CLI_ARG("label", offsetof(struct settings, label),
		"a name for it, shown by coop session ls"),
	CLI_ARG("max_lifetime_ms", offsetof(struct settings, lifetime), "end it after this time"),
	{0},
};

const struct cli_verb cli_verb_session_new = {
	.name = "session new",
	.synopsis = "[--label TEXT] [--lifetime DURATION]",
	.summary = "Begin a session and print its id",
	.operation = &coop_operation_session_new,
	.options = options,
	.settings_size = sizeof(struct settings),
	.show = show,
};
