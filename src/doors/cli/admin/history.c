#include <stdio.h>
#include <string.h>

#include "doors/cli/cli.h"
#include "doors/cli/record.h"
#include "doors/cli/table.h"
#include "doors/cli/terminal/terminal.h"
#include "doors/cli/verbs.h"

/* The most that one request brings, and what is shown if nobody says how many. */
#define PAGE_MAX 10000u
#define USUAL 100u

struct settings {
	const char *agent;
	struct cli_number since, until, limit;
};

static const struct cli_option options[] = {
	CLI_ARG("agent", offsetof(struct settings, agent),
		"only what this agent ran (all that you may see)"),
	CLI_ARG("since", offsetof(struct settings, since),
		"what started after this: an age such as 2h, or 2026-01-31T08:00:00Z"),
	CLI_ARG("until", offsetof(struct settings, until), "what started before this"),
	{"limit", 'n', CLI_COUNT, offsetof(struct settings, limit), NULL, "N",
	 "at most so many, the newest (100)"},
	{0},
};

static const struct cli_column columns[] = {
	{"STARTED", false, 0}, {"ID", false, 0},  {"AGENT", false, 0},
	{"STATE", false, 40},  {"TOOK", true, 0}, {"COMMAND", false, 0},
};

static void add_row(struct cli_table *table, const json_t *row)
{
	char state[CLI_TEXT_MAX], took[CLI_TEXT_MAX] = "-";
	cli_record_state(row, state);
	if (json_is_integer(json_object_get(row, "duration_ms")) && !cli_record_lost(row))
		cli_format_duration(cli_number(row, "duration_ms"), took);
	const char *const cells[] = {
		cli_text(row, "started_at"),
		cli_text(row, "id"),
		cli_text(row, "agent_path"),
		state,
		took,
		cli_text(row, "command"),
	};
	(void)cli_table_add(table, cells);
}

static void print(const json_t *rows)
{
	struct cli_table *table = cli_table_new(columns, sizeof(columns) / sizeof(columns[0]));
	size_t i;
	json_t *row;
	if (!table)
		return;
	json_array_foreach((json_t *)rows, i, row) add_row(table, row);
	cli_table_print(table, stdout, cli_terminal_width(), 0, "\n");
	cli_table_free(table);
}

/* One page after another, until there are `limit` rows or no more. */
static int collect(struct cli *cli, const struct settings *s, json_t *rows, bool *ret_more,
		   struct coop_error *error)
{
	const uint64_t limit = s->limit.set ? s->limit.value : USUAL;
	*ret_more = true;
	while (*ret_more && json_array_size(rows) < limit) {
		const uint64_t left = limit - json_array_size(rows);
		const json_t *last = json_array_get(rows, json_array_size(rows) - 1);
		json_t *args = cli_args(cli, last ? "before" : NULL, cli_text(last, "id"));
		json_t *page;
		if (args)
			(void)json_object_set_new(
				args, "limit",
				json_integer((json_int_t)(left < PAGE_MAX ? left : PAGE_MAX)));
		int r = cli_call(cli, "history", args, &page, error);
		if (r < 0)
			return r;
		const json_t *found = json_object_get(page, "processes");
		*ret_more = json_is_true(json_object_get(page, "more")) && json_array_size(found);
		(void)json_array_extend(rows, (json_t *)found);
		json_decref(page);
	}
	return 0;
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	const struct settings *s = settings;
	struct coop_error error;
	bool more;
	if (s->limit.set && s->limit.value == 0)
		return cli_misuse(cli, "--limit: at least 1");
	if (s->since.set && s->until.set && s->since.value > s->until.value)
		return cli_misuse(cli, "--since is later than --until");
	json_t *rows = json_array();
	int r = cli_open(cli, CLI_START_KEEPER, &error);
	if (r >= 0)
		r = collect(cli, s, rows, &more, &error);
	if (r >= 0 && cli->json)
		cli_print_json(rows);
	else if (r >= 0)
		print(rows);
	if (r >= 0 && more)
		cli_say("there are more (--limit shows more of them)");
	json_decref(rows);
	return r < 0 ? cli_fail(cli, NULL, &error) : CLI_OK;
}

const struct cli_verb cli_verb_history = {
	.name = "history",
	.synopsis = "[--agent AGENT] [--since TIME] [--until TIME] [--limit N]",
	.summary = "List what was run, also before the keeper was started, the newest first",
	.text = "STATE and COMMAND are as of coop ps. A TIME is an age, "
		"counted "
		"back from now (90s, 2h, 7d), or a date and\n"
		"time (2026-01-31, 2026-01-31T08:00:00Z, 2026-01-31T08:00:00+01:00; without a zone "
		"it is local).",
	.operation = &coop_operation_history,
	.options = options,
	.settings_size = sizeof(struct settings),
	.run = run,
};
