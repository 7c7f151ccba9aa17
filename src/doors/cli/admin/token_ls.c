#include <stdio.h>

#include "doors/cli/cli.h"
#include "doors/cli/record.h"
#include "doors/cli/table.h"
#include "doors/cli/terminal/terminal.h"
#include "doors/cli/verbs.h"

struct settings {
	const char *agent, *principal;
};

static const struct cli_column columns[] = {
	{"ID", true, 0},       {"AGENT", false, 0}, {"CREATED", false, 0},
	{"EXPIRES", false, 0}, {"LABEL", false, 0},
};

static bool show(const struct cli *cli, const char *id, const json_t *result)
{
	struct cli_table *table =
		cli->json ? NULL : cli_table_new(columns, sizeof(columns) / sizeof(columns[0]));
	size_t i;
	json_t *token;
	if (!table)
		return true;
	json_array_foreach(json_object_get(result, "tokens"), i, token)
	{
		char number[24];
		const char *expires = cli_text(token, "expires_at"),
			   *label = cli_text(token, "label");
		(void)snprintf(number, sizeof(number), "%lld", (long long)cli_number(token, "id"));
		const char *const cells[] = {number, cli_text(token, "agent"),
					     cli_text(token, "created_at"),
					     *expires ? expires : "never", *label ? label : "-"};
		(void)cli_table_add(table, cells);
	}
	cli_table_print(table, stdout, cli_terminal_width(), 0, "\n");
	cli_table_free(table);
	return true;
}

static const struct cli_option options[] = {
	CLI_ARG("agent", offsetof(struct settings, agent), "those of this agent and below it"),
	CLI_ARG("principal", offsetof(struct settings, principal), "whose agents (yours)"),
	{0},
};

const struct cli_verb cli_verb_token_ls = {
	.name = "token ls",
	.synopsis = "[--agent AGENT]",
	.summary = "List the tokens of the agent that you are and of those below it",
	.text = "The tokens themselves are not kept, and not shown.",
	.operation = &coop_operation_token_list,
	.options = options,
	.settings_size = sizeof(struct settings),
	.show = show,
};
