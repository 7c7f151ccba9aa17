#include <errno.h>
#include <stdio.h>

#include "doors/cli/cli.h"
#include "doors/cli/record.h"
#include "doors/cli/table.h"
#include "doors/cli/terminal/terminal.h"
#include "doors/cli/verbs.h"

static const struct cli_column columns[] = {
	{"ID", false, 0},      {"AGENT", false, 0},    {"CREATED", false, 0},
	{"EXPIRES", false, 0}, {"PROCESSES", true, 0}, {"LABEL", false, 0},
};

static bool show(const struct cli *cli, const char *id, const json_t *result)
{
	struct cli_table *table =
		cli->json ? NULL : cli_table_new(columns, sizeof(columns) / sizeof(columns[0]));
	size_t i;
	json_t *session;
	if (!table)
		return true;
	json_array_foreach(json_object_get(result, "sessions"), i, session)
	{
		char count[24];
		const char *expires = cli_text(session, "expires_at"),
			   *label = cli_text(session, "label");
		(void)snprintf(count, sizeof(count), "%lld",
			       (long long)cli_number(session, "processes"));
		const char *const cells[] = {
			cli_text(session, "id"),
			cli_text(session, "agent_path"),
			cli_text(session, "created_at"),
			*expires ? expires : "never",
			count,
			*label ? label : "-",
		};
		(void)cli_table_add(table, cells);
	}
	cli_table_print(table, stdout, cli_terminal_width(), 0, "\n");
	cli_table_free(table);
	return true;
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	struct coop_error error;
	int r = cli_open(cli, CLI_ONLY_RUNNING, &error);
	if (r >= 0)
		return cli_once(cli, CLI_ONLY_RUNNING, "session_list", json_object(), show);
	if (r != -ECONNREFUSED)
		return cli_fail(cli, NULL, &error);
	/* Sessions end with their keeper; looking must not start one. */
	json_t *none = json_pack("{s:[]}", "sessions");
	(void)show(cli, NULL, none);
	if (cli->json)
		cli_print_json(json_object_get(none, "sessions"));
	json_decref(none);
	return CLI_OK;
}

const struct cli_verb cli_verb_session_ls = {
	.name = "session ls",
	.synopsis = "",
	.summary = "List the sessions of the agent that you are and of those below it",
	.run = run,
};
