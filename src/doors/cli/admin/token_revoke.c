#include <stdio.h>

#include "doors/cli/cli.h"
#include "doors/cli/parse.h"
#include "doors/cli/verbs.h"

/* One token: what --json prints of it. */
static json_t *revoke(struct cli *cli, const char *word, int *code)
{
	/* The error is a part of the one value that is printed at the end. */
	const struct cli quiet = {.verb = cli->verb, .options = cli->options};
	struct coop_error error;
	uint64_t number;
	json_t *result;
	if (cli_parse_count(word, &number) < 0) {
		cli_error(&error, "invalid_input",
			  "%.64s is not the number of a token (coop token ls lists them)", word);
	} else if (cli_call(cli, "token_revoke", json_pack("{s:I}", "id", (json_int_t)number),
			    &result, &error) == 0) {
		if (json_is_true(json_object_get(result, "revoked"))) {
			if (!cli->json)
				(void)printf("token %s is revoked\n", word);
			return result;
		}
		cli_say("there is no token %s (coop token ls lists them)", word);
		*code = cli_failure(cli->verb);
		return result;
	}
	*code = cli_fail(&quiet, word, &error);
	return cli_error_json(&error);
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	struct coop_error error;
	if (cli_open(cli, CLI_START_KEEPER, &error) < 0)
		return cli_fail(cli, NULL, &error);
	int code = CLI_OK;
	json_t *all = json_array();
	for (size_t i = 0; i < count; i++)
		(void)json_array_append_new(all, revoke(cli, operands[i], &code));
	if (cli->json)
		cli_print_json(count == 1 ? json_array_get(all, 0) : all);
	json_decref(all);
	return code;
}

const struct cli_verb cli_verb_token_revoke = {
	.name = "token revoke",
	.synopsis = "ID…",
	.summary = "End tokens; connections that act by them end at once",
	.text = "ID is the number that coop token ls shows. What was started with a token goes on.",
	.min_operands = 1,
	.max_operands = CLI_ANY_NUMBER,
	.run = run,
};
