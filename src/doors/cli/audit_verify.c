#include <stdio.h>

#include "record.h"
#include "verbs.h"

static bool show(const struct cli *cli, const char *id, const json_t *result)
{
	const bool good = json_is_true(json_object_get(result, "good"));
	const long long lines = (long long)cli_number(result, "lines"),
			files = (long long)cli_number(result, "files"),
			line = (long long)cli_number(result, "line");
	if (!good) {
		char where[48] = "";
		if (line)
			(void)snprintf(where, sizeof(where), ", line %lld", line);
		cli_say("the audit is not whole: %s%s: %s", cli_text(result, "file"), where,
			cli_text(result, "fault"));
	} else if (!cli->json && lines == 0) {
		(void)printf("good: nothing was written yet\n");
	} else if (!cli->json) {
		(void)printf("good: %lld %s in %lld %s, %lld to %lld\n", lines,
			     lines == 1 ? "line" : "lines", files, files == 1 ? "file" : "files",
			     (long long)cli_number(result, "first"),
			     (long long)cli_number(result, "last"));
	}
	return good;
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	return cli_once(cli, CLI_START_KEEPER, "audit_verify", json_object(), show);
}

const struct cli_verb cli_verb_audit_verify = {
	.name = "audit verify",
	.synopsis = "",
	.summary = "Check that no line of the audit was removed, changed or moved",
	.text = "The exit code is 1 if something is wrong; the first fault is named.",
	.failure = CLI_FAILED,
	.usage = CLI_USAGE,
	.run = run,
};
