#include <stdio.h>

#include "doors/cli/cli.h"
#include "doors/cli/record.h"
#include "doors/cli/verbs.h"

struct settings {
	bool acknowledge;
};

/* "audit.log, line 7: "; a fault that an earlier keeper noted is in no file. */
static void format_place(const json_t *result, char *ret_text, size_t size)
{
	const char *file = cli_text(result, "file");
	const long long line = (long long)cli_number(result, "line");
	ret_text[0] = '\0';
	if (*file && line)
		(void)snprintf(ret_text, size, "%s, line %lld: ", file, line);
	else if (*file)
		(void)snprintf(ret_text, size, "%s: ", file);
}

static bool show(const struct cli *cli, const char *id, const json_t *result)
{
	const bool good = json_is_true(json_object_get(result, "good"));
	const long long lines = (long long)cli_number(result, "lines"),
			files = (long long)cli_number(result, "files");
	if (!good) {
		char place[300];
		format_place(result, place, sizeof(place));
		cli_say("the audit is not whole: %s%s", place, cli_text(result, "fault"));
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

static const struct cli_option options[] = {
	CLI_ARG("acknowledge", offsetof(struct settings, acknowledge),
		"forget the fault that was found when a keeper started; a line of the audit says "
		"so"),
	{0},
};

const struct cli_verb cli_verb_audit_verify = {
	.name = "audit verify",
	.synopsis = "[--acknowledge]",
	.summary = "Check that no line of the audit was removed, changed or moved",
	.text = "The exit code is 1 if something is wrong; the first fault is named. Lines that "
		"were missing when a keeper started stay a\n"
		"fault, also when others have come after them, until somebody says with "
		"--acknowledge that he knows of it.",
	.operation = &coop_operation_audit_verify,
	.options = options,
	.settings_size = sizeof(struct settings),
	.show = show,
};
