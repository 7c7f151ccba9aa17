#include <stdio.h>
#include <string.h>

#include "doors/cli/cli.h"
#include "doors/cli/record.h"
#include "doors/cli/table.h"
#include "doors/cli/terminal/terminal.h"
#include "doors/cli/verbs.h"

struct settings {
	struct cli_number count;
};

static const struct cli_column columns[] = {
	{"SEQ", true, 0},    {"AT", false, 0},   {"WHAT", false, 40},
	{"AGENT", false, 0}, {"TEXT", false, 0},
};

/* The words of a command, as the line has them. */
static void format_words(const json_t *argv, char *ret_text, size_t size)
{
	size_t used = 0, i;
	json_t *word;
	ret_text[0] = '\0';
	json_array_foreach((json_t *)argv, i, word)
	{
		const char *text = json_string_value(word);
		int n = snprintf(ret_text + used, size - used, "%s%s", i ? " " : "",
				 text ? text : "?");
		if (n < 0 || (size_t)n >= size - used)
			break;
		used += (size_t)n;
	}
}

static void format_what(const json_t *line, char ret_text[CLI_TEXT_MAX])
{
	const char *kind = cli_text(line, "kind"), *decision = cli_text(line, "decision");
	(void)snprintf(ret_text, CLI_TEXT_MAX, "%.30s%s%.30s", kind, *decision ? " " : "",
		       decision);
}

/* An attempt is its command; a refused one also says why. An end names the attempt that it belongs
 * to. */
static void format_text(const json_t *line, char *ret_text, size_t size)
{
	char words[1024];
	const char *command = cli_text(line, "command"), *reason = cli_text(line, "reason"),
		   *fault = cli_text(line, "fault");
	format_words(json_object_get(line, "argv"), words, sizeof(words));
	if (strcmp(cli_text(line, "kind"), "end") == 0) {
		char state[CLI_TEXT_MAX];
		json_t *record = json_pack("{s:s, s:s, s:O?}", "state", "exited", "end_cause",
					   cli_text(line, "end_cause"), "exit",
					   json_object_get(line, "exit"));
		cli_record_state(record, state);
		json_decref(record);
		(void)snprintf(ret_text, size, "of %lld: %s", (long long)cli_number(line, "spawn"),
			       state);
		return;
	}
	if (*fault) {
		(void)snprintf(ret_text, size, "%s", fault);
		return;
	}
	(void)snprintf(ret_text, size, "%s%s%s%s", *command ? command : words, *reason ? "  (" : "",
		       reason, *reason ? ")" : "");
}

static bool show(const struct cli *cli, const char *id, const json_t *result)
{
	struct cli_table *table =
		cli->json ? NULL : cli_table_new(columns, sizeof(columns) / sizeof(columns[0]));
	size_t i;
	json_t *line;
	if (!table)
		return true;
	json_array_foreach(json_object_get(result, "lines"), i, line)
	{
		char seq[24], what[CLI_TEXT_MAX], text[2048];
		const char *agent = cli_text(line, "agent");
		(void)snprintf(seq, sizeof(seq), "%lld", (long long)cli_number(line, "seq"));
		format_what(line, what);
		format_text(line, text, sizeof(text));
		const char *const cells[] = {seq, cli_text(line, "at"), what, *agent ? agent : "-",
					     text};
		(void)cli_table_add(table, cells);
	}
	cli_table_print(table, stdout, cli_terminal_width(), 0, "\n");
	cli_table_free(table);
	return true;
}

static const struct cli_option options[] = {
	CLI_ARG("count", offsetof(struct settings, count), "so many (50, at most 10000)"),
	{0},
};

const struct cli_verb cli_verb_audit_tail = {
	.name = "audit tail",
	.synopsis = "[-n N]",
	.summary = "Show the latest lines of the audit, the oldest of them first",
	.operation = &coop_operation_audit_tail,
	.options = options,
	.settings_size = sizeof(struct settings),
	.show = show,
};
