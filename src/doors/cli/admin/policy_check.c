#include <string.h>

#include "doors/cli/cli.h"
#include "doors/cli/place.h"
#include "doors/cli/record.h"
#include "doors/cli/sandbox_args.h"
#include "doors/cli/verbs.h"
#include "doors/cli/verdict.h"
#include "doors/cli/workspace.h"

struct settings {
	const char *agent, *cwd, *line;
	struct cli_sandbox sandbox;
};

static const struct cli_option options[] = {
	CLI_ARG("agent", offsetof(struct settings, agent), "as this agent (you)"),
	CLI_ARG("cwd", offsetof(struct settings, cwd), "started there (here)"),
	CLI_ARG("command", offsetof(struct settings, line),
		"a shell command line, as coop run --shell takes it, instead of words"),
	CLI_SANDBOX_ROWS(struct settings),
	{0},
};

static bool show(const struct cli *cli, const char *id, const json_t *result)
{
	if (!cli->json)
		cli_verdict_print(result);
	return strcmp(cli_text(result, "status"), "allowed") == 0;
}

/* Adds the command and where it would be started. NULL with *error filled. */
static json_t *make_args(const struct cli *cli, size_t count, char **words,
			 struct coop_error *error)
{
	const struct settings *s = cli->settings;
	json_t *args = cli_args(cli, s->line ? "mode" : NULL, "shell"), *argv = json_array();
	bool good = args != NULL;
	for (size_t i = 0; i < count && good; i++)
		good = json_array_append_new(argv, json_string(words[i])) == 0;
	if (!good)
		cli_error(error, "invalid_input", "the command is not valid UTF-8");
	else if (count)
		(void)json_object_set(args, "argv", argv);
	json_decref(argv);
	if (good && cli_place_cwd(s->cwd, args, error) == 0 &&
	    cli_sandbox_args(cli, &s->sandbox, args, error) == 0)
		return args;
	json_decref(args);
	return NULL;
}

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	const struct settings *s = settings;
	struct coop_error error;
	if (!s->line == !count)
		return cli_misuse(cli, "%s",
				  count ? "the command is either -c CMDLINE or words"
					: "which command? (-c CMDLINE, or words)");
	const struct cli_option *zero = cli_sandbox_zero(cli->options, s);
	if (zero)
		return cli_misuse(cli, "--%s 0: must be more than 0", zero->name);
	json_t *args = make_args(cli, count, operands, &error);
	if (!args || cli_open(cli, CLI_START_KEEPER, &error) < 0) {
		json_decref(args);
		return cli_fail(cli, NULL, &error);
	}
	/* The program is looked for in the PATH that it would get. */
	(void)json_object_set_new(args, "base_env", cli_place_env(cli->coop));
	cli_workspace_add(cli, &s->sandbox, s->cwd, s->agent, args);
	return cli_once(cli, CLI_START_KEEPER, "check", args, show);
}

const struct cli_verb cli_verb_policy_check = {
	.name = "policy check",
	.synopsis = "[--agent AGENT] [--cwd FOLDER] [OPTION…] {-c CMDLINE | [--] PROGRAM [ARG…]}",
	.summary = "Say whether a command would be started, and which rule says so",
	.text = "Nothing is started. Each line is a rule that has something to say: its action, "
		"where it "
		"stands, and why; the strictest\n"
		"comes first, and holds. The exit code is 0 if the command would be started, else "
		"1. Rules, the folder and limits\n"
		"are looked at, not whether the program exists.",
	.operation = &coop_operation_check,
	.options = options,
	.settings_size = sizeof(struct settings),
	.operands = CLI_OPERANDS_LAST,
	.max_operands = CLI_ANY_NUMBER,
	.run = run,
};
