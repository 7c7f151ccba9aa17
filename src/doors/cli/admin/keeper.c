#include <errno.h>
#include <string.h>

#include "doors/cli/cli.h"
#include "doors/cli/sibling.h"
#include "doors/cli/verbs.h"

struct settings {
	struct cli_list set;
};

/* For help and completion only: the words are read by coop-keeper. */
static const struct cli_option options[] = {
	{"set", 0, CLI_LIST, offsetof(struct settings, set), NULL, "NAME=VALUE",
	 "change a setting; may be repeated"},
	{0},
};

/* `operands` lies in main's argv, so that there is a place in front of it for the program's
 * name. */
static int run(struct cli *cli, const void *settings, size_t count, char **operands)
{
	if (count == 1 && (strcmp(operands[0], "--help") == 0 || strcmp(operands[0], "-h") == 0)) {
		cli_help_verb(cli->verb);
		return CLI_OK;
	}
	for (size_t i = 0; i < count; i++)
		cli->json = cli->json || strcmp(operands[i], "--json") == 0;
	if (cli->json)
		return cli_misuse(cli, "it serves until it is ended and has no --json; coop info "
				       "--json tells about it");
	int r = cli_sibling_exec("keeper", operands - 1);
	struct coop_error error;
	cli_error(&error, "unreachable", "cannot run coop-keeper: %s%s", strerror(-r),
		  r == -ENOENT ? " (it belongs beside coop, in ../libexec/coop or in PATH)" : "");
	return cli_fail(cli, NULL, &error);
}

const struct cli_verb cli_verb_keeper = {
	.name = "keeper",
	.synopsis = "[--set NAME=VALUE]…",
	.summary = "Run the keeper here, in the foreground, with its log on stderr",
	.text = "Settings stand in coop.conf (coop.conf(5)); over it in COOP_SET=\"NAME=VALUE "
		"NAME=VALUE\", for a keeper that is started on\n"
		"demand; over that in --set. coop info shows those in force. Values are integers; "
		"sizes and\n"
		"times may have a unit (64M, 30s), and times without one are milliseconds:\n"
		"  max_running            processes that main runs at a time, with all agents "
		"below it (256)\n"
		"  agent_max_running      the same for other agents that have no limit of their "
		"own (64)\n"
		"  principal_max_running  the same for all agents of a user together (256)\n"
		"  host_max_running       the same for the whole keeper (1024)\n"
		"  principal_buffer_bytes memory for a user's output, unread answers too (4 GiB)\n"
		"  max_retained           finished persistent processes that are kept (32)\n"
		"  max_finished           finished processes that are kept with their output, for "
		"each agent (64)\n"
		"  max_receipts           finished processes that are remembered without it "
		"(1024)\n"
		"  max_agents             agents (4096)\n"
		"  max_tokens             tokens (4096)\n"
		"  max_sessions           sessions of an agent (256)\n"
		"  max_events             pieces of output whose order is known, for each process "
		"(16384)\n"
		"  max_connections        clients at a time (4096)\n"
		"  agent_max_connections  of those, of one agent's tokens (1024)\n"
		"  login_max_connections  of those, that have not logged in (256)\n"
		"  login_timeout_ms       how long they may wait with it (10 s)\n"
		"  hold_idle_ms           how long a process waits for a reader that takes nothing "
		"(10 s)\n"
		"  spool_stream_bytes     the most that one stream puts into a file (64 MiB)\n"
		"  spool_total_bytes      the most that all of a user's do (1 GiB)\n"
		"  idle_exit_ms           a keeper started on demand leaves after so long with "
		"nothing to keep (5 min; 0: never)\n"
		"  max_lifetime_ms        the most that --lifetime can ask for; what a persistent "
		"process gets (6 h)\n"
		"  persistent_idle_ms     the idle limit of a persistent process that names none "
		"(30 min)\n"
		"  exit_retention_ms      how long the output is kept after the end (10 min)\n"
		"  min_retention_ms       the least that --retention can ask for (1 min)\n"
		"  max_history            ended processes that coop history remembers (100000)\n"
		"  audit_max_bytes        the size of a file of the audit (64 MiB)\n"
		"  audit_files            how many full ones of it are kept (8)",
	.options = options,
	.settings_size = sizeof(struct settings),
	.operands = CLI_OPERANDS_ALL,
	.max_operands = CLI_ANY_NUMBER,
	.run = run,
};
