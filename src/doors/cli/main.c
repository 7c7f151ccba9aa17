/* coop: the command line. Finds the verb's row, reads its options by its table, and lets it run. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli.h"
#include "sibling.h"
#include "verbs.h"

struct common {
	bool json, help;
};

static const struct cli_option common_options[] = {
	{"json", 0, CLI_FLAG, offsetof(struct common, json), NULL, NULL, "print JSON"},
	{"help", 'h', CLI_FLAG, offsetof(struct common, help), NULL, NULL, "say how it is used"},
	{0},
};

static int wrong_usage(const struct cli *cli, const char *problem)
{
	struct coop_error error;
	cli_error(&error, "usage", "%s: %s (see: coop help %s)", cli->verb->name, problem,
		  cli->verb->name);
	(void)cli_fail(cli, NULL, &error);
	return cli_finish(cli, cli->verb->usage);
}

static int check_operands(const struct cli *cli, size_t count)
{
	const struct cli_verb *verb = cli->verb;
	if (count >= verb->min_operands && count <= verb->max_operands)
		return CLI_OK;
	char problem[CLI_OPTION_ERROR_MAX];
	(void)snprintf(problem, sizeof(problem), "%s words; usage: coop %s%s%s",
		       count < verb->min_operands ? "too few" : "too many", verb->name,
		       *verb->synopsis ? " " : "", verb->synopsis);
	return wrong_usage(cli, problem);
}

static int run_verb(const struct cli_verb *verb, char **args)
{
	struct cli cli = {.verb = verb};
	struct common common = {0};
	COOP_AUTO_FREE void *settings = calloc(1, verb->settings_size + 1);
	if (!settings) {
		cli_say("out of memory");
		return verb->failure;
	}
	const struct cli_option_set sets[] = {
		{verb->options, settings},
		{common_options, &common},
	};
	char problem[CLI_OPTION_ERROR_MAX];
	size_t count;
	int r = cli_options_parse(sets, 2, verb->operands, args, &count, problem);
	cli.json = common.json;
	int code;
	if (r < 0) {
		code = wrong_usage(&cli, problem);
	} else if (common.help) {
		cli_help_verb(verb);
		code = cli_finish(&cli, CLI_OK);
	} else {
		code = check_operands(&cli, count);
		if (code == CLI_OK)
			code = cli_finish(&cli, verb->run(&cli, settings, count, args));
	}
	cli_close(&cli);
	cli_options_free(verb->options, settings);
	return code;
}

/* A closed stdin, stdout or stderr would become the number of the next file opened, the keeper's socket, and whatever is
 * printed would go there. */
static void fill_standard_fds(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			(void)!open("/dev/null", O_RDWR);
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
	const struct cli_verb *verb = cli_verb_find(word);
	if (verb)
		return run_verb(verb, argv + (argc > 1 ? 2 : 1));
	if (word[0] == '-') {
		cli_say("unknown option %s (see: coop help)", word);
		return CLI_USAGE;
	}
	int r = cli_sibling_exec(word, argv + 1);
	if (r == -ENOENT)
		cli_say("there is no verb %s (see: coop help)", word);
	else
		cli_say("cannot run coop-%s: %s", word, strerror(-r));
	return CLI_USAGE;
}
