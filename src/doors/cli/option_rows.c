#include "doors/cli/option_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "interface/schema.h"

/* Names and words that are made of an argument's row. */
struct words {
	char name[32], argument[96];
};

/* "some-time" of "outer.some_time_ms". */
static const char *name_of(const struct coop_field *row, char *ret)
{
	static const char *const units[] = {"_ms", "_bytes"};
	size_t length = 0;
	if (row->option)
		return row->option;
	for (; row->name[length]; length++)
		ret[length] = row->name[length] == '_' ? '-' : row->name[length];
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		const size_t tail = strlen(units[i]);
		if (length > tail && strcmp(row->name + length - tail, units[i]) == 0)
			ret[length - tail] = '\0';
	}
	return ret;
}

static enum cli_option_kind kind_of(const struct coop_field *row)
{
	static const enum cli_option_kind units[] = {
		[COOP_UNIT_NONE] = CLI_COUNT,  [COOP_UNIT_BYTES] = CLI_SIZE,
		[COOP_UNIT_MS] = CLI_DURATION, [COOP_UNIT_SECONDS] = CLI_SECONDS,
		[COOP_UNIT_CORES] = CLI_SHARE, [COOP_UNIT_TIME] = CLI_TIME,
	};
	static const enum cli_option_kind types[] = {
		[COOP_FIELD_STRING] = CLI_TEXT, [COOP_FIELD_BOOL] = CLI_FLAG,
		[COOP_FIELD_ENUM] = CLI_CHOICE, [COOP_FIELD_STRINGS] = CLI_LIST,
		[COOP_FIELD_MAP] = CLI_PAIRS,   [COOP_FIELD_OBJECTS] = CLI_LIST,
	};
	return row->type == COOP_FIELD_INT || row->type == COOP_FIELD_NUMBER ? units[row->unit]
									     : types[row->type];
}

/* What help calls the value; NULL: there is none. */
static const char *argument_of(const struct coop_field *row, enum cli_option_kind kind,
			       struct words *words)
{
	static const char *const kinds[] = {
		[CLI_DURATION] = "DURATION", [CLI_SIZE] = "SIZE", [CLI_COUNT] = "N",
		[CLI_SECONDS] = "DURATION",  [CLI_SHARE] = "N",   [CLI_TIME] = "TIME",
		[CLI_LIST] = "PATH",         [CLI_PAIRS] = NULL,
	};
	size_t used = 0;
	if (row->form || kind != CLI_CHOICE)
		return row->form ? row->form : kinds[kind];
	for (size_t i = 0; row->choices[i] && used < sizeof(words->argument); i++) {
		const int n = snprintf(words->argument + used, sizeof(words->argument) - used,
				       "%s%s", i ? "|" : "", row->choices[i]);
		used += n > 0 ? (size_t)n : 0;
	}
	return words->argument;
}

struct cli_option *cli_options_complete(const struct cli_option *options,
					const struct coop_field *args)
{
	size_t count = 0;
	while (options && options[count].help)
		count++;
	struct cli_option *all =
		calloc(1, (count + 1) * sizeof(*all) + count * sizeof(struct words));
	if (!all)
		return NULL;
	struct words *words = (void *)(all + count + 1);
	for (size_t i = 0; i < count; i++) {
		struct cli_option *option = &all[i];
		*option = options[i];
		option->row = option->field ? coop_schema_find(args, option->field) : NULL;
		if (option->name)
			continue;
		option->name = name_of(option->row, words[i].name);
		option->letter = option->row->letter;
		if (!option->kind)
			option->kind = kind_of(option->row);
		if (!option->argument)
			option->argument = argument_of(option->row, option->kind, &words[i]);
	}
	return all;
}
