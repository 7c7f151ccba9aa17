#include <stdio.h>

#include "doors/cli/cli.h"
#include "doors/cli/record.h"
#include "doors/cli/verbs.h"

struct settings {
	const char *label, *principal;
	struct cli_number expires;
};

/* The token alone on stdout, so that it can go into a file as it is. */
static bool show(const struct cli *cli, const char *id, const json_t *result)
{
	const struct settings *s = cli->settings;
	const char *expires = cli_text(result, "expires_at");
	if (cli->json)
		return true;
	(void)puts(cli_text(result, "token"));
	(void)fflush(stdout);
	cli_say("token %lld of %s%s%s%s%s: it is shown only now; keep it in a file of mode 600 for "
		"--token-file, or in COOP_TOKEN",
		(long long)cli_number(result, "id"), cli_text(result, "agent"),
		s->principal ? " of " : "", s->principal ? s->principal : "",
		*expires ? ", valid until " : "", expires);
	return true;
}

static const struct cli_option options[] = {
	CLI_ARG("expires_in_ms", offsetof(struct settings, expires),
		"how long it is valid (until it is revoked)"),
	CLI_ARG("label", offsetof(struct settings, label),
		"what it is for, shown by coop token ls"),
	CLI_ARG("principal", offsetof(struct settings, principal), "whose agent (yours)"),
	{0},
};

const struct cli_verb cli_verb_token_new = {
	.name = "token new",
	.synopsis = "[AGENT] [--expires DURATION] [--label TEXT]",
	.summary = "Make a token for an agent and print it, this once",
	.text = "Without AGENT it is for the agent that you are. For example:\n"
		"  (umask 077; coop token new tester >tester.token)\n"
		"  coop run --token-file tester.token -- make test",
	.operation = &coop_operation_token_new,
	.options = options,
	.settings_size = sizeof(struct settings),
	.max_operands = 1,
	.operand = "agent",
	.show = show,
};
