#include "doors/cli/verbs/processes.h"

#include <string.h>

#include "doors/cli/record.h"
#include "doors/cli/table.h"

/* The second is left out where everything is the caller's own. */
static const struct cli_column columns[] = {
	{"ID", false, 0},     {"AGENT", false, 0}, {"PID", true, 0},
	{"STATE", false, 40}, {"AGE", true, 0},    {"CPU%", true, 0},
	{"MEM", true, 0},     {"TAG", false, 20},  {"COMMAND", false, 0},
};
#define COLUMNS (sizeof(columns) / sizeof(columns[0]))

/* What is left of a finished process's tree is said beside its end: nothing that lives is
 * hidden. */
static void format_state(const json_t *record, char text[CLI_TEXT_MAX])
{
	cli_record_state(record, text);
	const long long left = (long long)cli_number(record, "descendants");
	if (cli_record_finished(record) && left > 0) {
		char end[CLI_TEXT_MAX];
		(void)snprintf(end, sizeof(end), "%s", text);
		(void)snprintf(text, CLI_TEXT_MAX, "%.60s, left %lld", end, left);
	}
}

static bool own(const json_t *record)
{
	return strcmp(cli_text(record, "agent"), "self") == 0;
}

static void add_record(struct cli_table *table, const json_t *record, bool agents)
{
	char pid[24] = "-", state[CLI_TEXT_MAX], age[CLI_TEXT_MAX], cpu[CLI_TEXT_MAX],
	     memory[CLI_TEXT_MAX];
	const bool lost = cli_record_lost(record);
	if (!cli_record_finished(record))
		(void)snprintf(pid, sizeof(pid), "%lld", (long long)cli_number(record, "pid"));
	/* Only what can be typed as an ID: the program's name stands in the last column anyway. */
	const char *tag = cli_text(record, "tag");
	format_state(record, state);
	cli_format_duration(cli_number(record, "duration_ms"), age);
	cli_format_cpu(record, cpu);
	cli_format_bytes_or_dash(cli_member(record, "stats", "memory_bytes"), memory);
	const char *cells[COLUMNS] = {cli_text(record, "id")};
	size_t used = 1;
	if (agents)
		cells[used++] = own(record) ? "self" : cli_text(record, "agent_path");
	const char *const rest[] = {pid,
				    state,
				    lost ? "-" : age,
				    cpu,
				    memory,
				    *tag ? tag : "-",
				    cli_text(record, "command")};
	memcpy(cells + used, rest, sizeof(rest));
	(void)cli_table_add(table, cells);
}

void cli_processes_print(const json_t *records, FILE *out, size_t width, size_t rows,
			 const char *newline)
{
	struct cli_column shown[COLUMNS];
	size_t i;
	json_t *record;
	bool agents = false;
	json_array_foreach(records, i, record) agents = agents || !own(record);
	memcpy(shown, columns, sizeof(columns));
	if (!agents)
		memmove(shown + 1, columns + 2, sizeof(columns) - 2 * sizeof(columns[0]));
	struct cli_table *table = cli_table_new(shown, agents ? COLUMNS : COLUMNS - 1);
	if (!table)
		return;
	json_array_foreach(records, i, record)
	{
		if (rows == 0 || i < rows)
			add_record(table, record, agents);
	}
	cli_table_print(table, out, width, rows, newline);
	cli_table_free(table);
}
