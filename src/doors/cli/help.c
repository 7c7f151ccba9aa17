#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "doors/cli/cli.h"
#include "doors/cli/verbs.h"

/* Columns of an option's name and of what it does. */
#define HEAD_WIDTH 28
#define HELP_WIDTH 88

struct settings {
	bool words;
};

/* "-t, --tail N" */
static void option_head(const struct cli_option *option, char *text, size_t size)
{
	char letter[8] = "    ";
	if (option->letter)
		(void)snprintf(letter, sizeof(letter), "-%c, ", option->letter);
	(void)snprintf(text, size, "%s--%s%s%s", letter, option->name, option->argument ? " " : "",
		       option->argument ? option->argument : "");
}

/* How much of the text fits on a line: up to a space, or all of it. */
static size_t line_length(const char *text, size_t width)
{
	size_t length = strlen(text);
	while (length > width) {
		const char *space = memrchr(text, ' ', length);
		if (!space)
			break;
		length = (size_t)(space - text);
	}
	return length;
}

static void print_option(const struct cli_option *option)
{
	char head[128];
	option_head(option, head, sizeof(head));
	/* A head that fills its column gets a line of its own. */
	if (strlen(head) > HEAD_WIDTH) {
		(void)printf("  %s\n", head);
		head[0] = '\0';
	}
	const char *text = option->help;
	for (size_t length; *text; text += length + (text[length] == ' '), head[0] = '\0') {
		length = line_length(text, HELP_WIDTH);
		(void)printf("  %-*s %.*s\n", HEAD_WIDTH, head, (int)length, text);
	}
}

const struct cli_option *cli_common_options(const struct cli_verb *verb)
{
	static const struct cli_option rows[] = {
		{"token-file", 0, CLI_TEXT, offsetof(struct cli_common, token_file), NULL, "FILE",
		 "act as the agent whose token is the first line of this file (else COOP_TOKEN)"},
		{"json", 0, CLI_FLAG, offsetof(struct cli_common, json), NULL, NULL,
		 "print JSON instead of text for people"},
		{"help", 'h', CLI_FLAG, offsetof(struct cli_common, help), NULL, NULL,
		 "print this"},
		{0},
	};
	/* Not --json either where the whole command line is somebody else's. */
	return rows + (verb->operands == CLI_OPERANDS_ALL ? 2 : verb->no_keeper ? 1 : 0);
}

static void print_list(const struct cli_verb *const *verbs, int width)
{
	for (; *verbs; verbs++)
		(void)printf("  %-*s %s\n", width, (*verbs)->name, (*verbs)->summary);
}

void cli_help_verb(const struct cli_verb *verb)
{
	(void)printf("usage: coop %s%s%s\n\n%s.\n", verb->name, *verb->synopsis ? " " : "",
		     verb->synopsis, verb->summary);
	if (verb->text)
		(void)printf("\n%s\n", verb->text);
	if (verb->subs) {
		(void)printf("\nVerbs:\n");
		print_list(verb->subs, 14);
	}
	(void)printf("\nOptions:\n");
	COOP_AUTO_FREE struct cli_option *options = cli_verb_options(verb);
	for (const struct cli_option *option = options; option && option->name; option++)
		print_option(option);
	for (const struct cli_option *option = cli_common_options(verb); option->name; option++)
		print_option(option);
}

static void print_verbs(void)
{
	(void)printf(
		"usage: coop VERB [OPTION…] [ARGUMENT…]\n\n"
		"coop keeps the processes that agents start: it runs them, captures what they "
		"print, and tells how\n"
		"they ended. The first command starts the keeper; there is nothing to set up.\n\n");
	print_list(cli_verbs, 9);
	(void)printf("\nAn ID is what coop run -d prints, a tag, or the beginning of an id that "
		     "fits only one process.\n"
		     "With an agent's token in COOP_TOKEN, or in the file of --token-file, every "
		     "verb acts as that agent.\n"
		     "coop help VERB tells more; so does the manual page coop(1).\n"
		     "Try: coop run -- echo hello\n");
}

static json_t *verbs_json(const struct cli_verb *const *verbs);

static json_t *verb_json(const struct cli_verb *verb)
{
	json_t *options = json_array();
	COOP_AUTO_FREE struct cli_option *rows = cli_verb_options(verb);
	for (const struct cli_option *option = rows; option && option->name; option++)
		(void)json_array_append_new(
			options, json_pack("{s:s, s:s?, s:s}", "name", option->name, "argument",
					   option->argument, "help", option->help));
	json_t *value = json_pack("{s:s, s:s, s:s, s:o}", "name", verb->name, "synopsis",
				  verb->synopsis, "summary", verb->summary, "options", options);
	if (verb->subs)
		(void)json_object_set_new(value, "verbs", verbs_json(verb->subs));
	return value;
}

static json_t *verbs_json(const struct cli_verb *const *verbs)
{
	json_t *list = json_array();
	for (; *verbs; verbs++)
		(void)json_array_append_new(list, verb_json(*verbs));
	return list;
}

/* What completion offers: the verbs, those of a group, or one verb's options. */
static void print_words(const struct cli_verb *only)
{
	for (const struct cli_verb *const *verb = only ? only->subs : cli_verbs; verb && *verb;
	     verb++)
		(void)puts(cli_verb_word(*verb));
	if (!only)
		return;
	/* A "=" behind an option says that it takes a value. */
	COOP_AUTO_FREE struct cli_option *own = cli_verb_options(only);
	const struct cli_option *const tables[] = {own, cli_common_options(only)};
	for (size_t i = 0; i < 2; i++)
		for (const struct cli_option *option = tables[i]; option && option->name;
		     option++) {
			(void)printf("--%s%s\n", option->name, option->argument ? "=" : "");
			if (option->letter && option->argument)
				(void)printf("-%c=\n", option->letter);
		}
}

static void print_json(const struct cli_verb *only)
{
	json_t *value = only ? verb_json(only) : verbs_json(cli_verbs);
	cli_print_json(value);
	json_decref(value);
}

/* "help agent add": all words must be the verb's. */
static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	const struct settings *s = settings;
	size_t used = 0;
	const struct cli_verb *verb = count ? cli_verb_find(operands, &used) : NULL;
	if (used < count || (count && !verb)) {
		struct coop_error error;
		cli_error(&error, "usage", "there is no verb %s%s%s (see: coop help)", operands[0],
			  count > 1 ? " " : "", count > 1 ? operands[1] : "");
		(void)cli_fail(cli, NULL, &error);
		return CLI_USAGE;
	}
	if (s->words)
		print_words(verb);
	else if (cli->json)
		print_json(verb);
	else if (verb)
		cli_help_verb(verb);
	else
		print_verbs();
	return CLI_OK;
}

static const struct cli_option options[] = {
	{"words", 0, CLI_FLAG, offsetof(struct settings, words), NULL, NULL,
	 "print the words that completion offers"},
	{0},
};

const struct cli_verb cli_verb_help = {
	.name = "help",
	.synopsis = "[VERB]",
	.summary = "Say how coop, or one verb, is used",
	.options = options,
	.settings_size = sizeof(struct settings),
	.max_operands = 2,
	.no_keeper = true,
	.run = run,
};
