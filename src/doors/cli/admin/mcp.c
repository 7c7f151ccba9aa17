#include <stdio.h>

#include "doors/cli/cli.h"
#include "doors/cli/door.h"
#include "doors/cli/verbs.h"

struct settings {
	struct cli_door door;
	const char *tools;
	struct cli_number max_wait, max_line;
};

static const struct cli_option options[] = {
	CLI_DOOR_ROWS(struct settings),
	{"private", 0, CLI_FLAG, offsetof(struct settings, door.private_keeper), NULL, NULL,
	 "with a keeper of its own, which ends with the client, and all processes with it"},
	{"tools", 0, CLI_CHOICE, offsetof(struct settings, tools), NULL, "default|harn|all",
	 "which tools to offer"},
	{"max-wait", 0, CLI_DURATION, offsetof(struct settings, max_wait), NULL, "DURATION",
	 "every call answers before (50s): most clients give up after 60"},
	{"max-line", 0, CLI_SIZE, offsetof(struct settings, max_line), NULL, "SIZE",
	 "largest message that is taken (16M)"},
	{0},
};

static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	const struct settings *s = settings;
	char wait[32], line[32];
	const char *more[8] = {0};
	size_t used = 0;
	(void)count;
	(void)operands;
	if (cli->json)
		return cli_misuse(cli, "all that it prints is JSON: leave --json out");
	if (s->max_wait.set && (s->max_wait.value < 1000 || s->max_wait.value > 86400000))
		return cli_misuse(cli, "--max-wait is from 1s to 24h");
	if (s->max_line.set && (s->max_line.value < 1024 || s->max_line.value > 1u << 30))
		return cli_misuse(cli, "--max-line is from 1K to 1G");
	if (s->tools) {
		more[used++] = "--tools";
		more[used++] = s->tools;
	}
	if (s->max_wait.set) {
		(void)snprintf(wait, sizeof(wait), "%llu", (unsigned long long)s->max_wait.value);
		more[used++] = "--max-wait";
		more[used++] = wait;
	}
	if (s->max_line.set) {
		(void)snprintf(line, sizeof(line), "%llu", (unsigned long long)s->max_line.value);
		more[used++] = "--max-line";
		more[used++] = line;
	}
	return cli_door_exec(cli, "mcp", &s->door, more);
}

const struct cli_verb cli_verb_mcp = {
	.name = "mcp",
	.synopsis = "[OPTION]…",
	.summary = "Offer the tools to a language model: an MCP server on stdin and stdout",
	.text = "For the configuration of an MCP host: command coop, arguments mcp. The keeper is "
		"started if need be, and stays:\n"
		"a host that is started again finds its background processes (list_processes).\n"
		"docs/MCP.md has what to paste into the usual hosts.",
	.operation = &coop_operation_spawn,
	.options = options,
	.settings_size = sizeof(struct settings),
	.run = run,
};
