/* coop: the command line. Finds the verb's row, reads its options by its table, and lets it run. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "doors/cli/cli.h"
#include "doors/cli/options.h"
#include "doors/cli/sibling.h"
#include "doors/cli/verbs.h"

static int check_operands(const struct cli *cli, size_t count)
{
	const struct cli_verb *verb = cli->verb;
	if (count >= verb->min_operands && count <= verb->max_operands)
		return CLI_OK;
	char problem[CLI_OPTION_ERROR_MAX];
	(void)snprintf(problem, sizeof(problem), "%s words; usage: coop %s%s%s",
		       count < verb->min_operands ? "too few" : "too many", verb->name,
		       *verb->synopsis ? " " : "", verb->synopsis);
	return cli_misuse(cli, "%s", problem);
}

static int run_verb(const struct cli_verb *verb, char **args)
{
	struct cli_common common = {0};
	COOP_AUTO_FREE void *settings = calloc(1, verb->settings_size + 1);
	COOP_AUTO_FREE struct cli_option *options = cli_verb_options(verb);
	struct cli cli = {.verb = verb, .options = options, .settings = settings};
	if (!settings || !options) {
		cli_say("out of memory");
		return cli_failure(verb);
	}
	const struct cli_option_set sets[] = {
		{options, settings},
		{cli_common_options(verb), &common},
	};
	char problem[CLI_OPTION_ERROR_MAX];
	size_t count;
	int r = cli_options_parse(sets, 2, verb->operands, args, &count, problem);
	cli.json = common.json;
	cli.token_file = common.token_file;
	int code;
	/* What stands behind a word that is no verb of the group is not the fault. */
	if (r < 0 && !(verb->subs && count)) {
		code = cli_finish(&cli, cli_misuse(&cli, "%s", problem));
	} else if (common.help) {
		cli_help_verb(verb);
		code = cli_finish(&cli, CLI_OK);
	} else {
		code = check_operands(&cli, count);
		if (code == CLI_OK)
			code = verb->run ? verb->run(&cli, settings, count, args)
					 : cli_run_operation(&cli, count, args);
		code = cli_finish(&cli, code);
	}
	cli_close(&cli);
	cli_options_free(options, settings);
	return code;
}

/* A closed stdin, stdout or stderr would become the number of the next file opened, the keeper's
 * socket, and whatever is printed would go there. */
static void fill_standard_fds(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", O_RDWR);
}

/* There is no verb whose options could be read; --json counts all the same. */
static int no_such_verb(char **argv, const struct coop_error *error)
{
	struct cli cli = {.verb = &cli_verb_help};
	for (char **arg = argv + 1; *arg; arg++)
		cli.json = cli.json || strcmp(*arg, "--json") == 0;
	(void)cli_fail(&cli, NULL, error);
	return cli_finish(&cli, CLI_USAGE);
}

/* "agent --json ls" is "agent ls --json": of what all verbs take, each word may stand before the
 * name's second one, too. */
static void lift_word(char **args)
{
	size_t at = 0;
	while (args[at] && args[at][0] == '-')
		at += strcmp(args[at], "--token-file") == 0 && args[at + 1] ? 2 : 1;
	if (!args[at])
		return;
	char *word = args[at];
	memmove(args + 1, args, at * sizeof(*args));
	args[0] = word;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *word, *verb;
	} aliases[] = {
		{"--help", "help"}, {"-h", "help"}, {"--version", "version"}, {"-V", "version"}};
	const char *word = argc > 1 ? argv[1] : "help";
	fill_standard_fds();

	for (size_t i = 0; i < sizeof(aliases) / sizeof(aliases[0]); i++)
		if (strcmp(word, aliases[i].word) == 0)
			word = aliases[i].verb;
	char *words[] = {(char *)word, NULL, NULL};
	size_t used;
	const struct cli_verb *verb = cli_verb_find(words, &used);
	if (verb && verb->subs) {
		lift_word(argv + 2);
		words[1] = argv[2];
		verb = cli_verb_find(words, &used);
	}
	if (verb)
		return run_verb(verb, argv + (argc > 1 ? 1 + used : 1));
	struct coop_error error;
	int r = word[0] == '-' ? 0 : cli_sibling_exec(word, argv + 1);
	if (r == 0)
		cli_error(&error, "usage", "unknown option %s (see: coop help)", word);
	else if (r == -ENOENT)
		cli_error(&error, "usage", "there is no verb %s (see: coop help)", word);
	else
		cli_error(&error, "usage", "cannot run coop-%s: %s", word, strerror(-r));
	return no_such_verb(argv, &error);
}
