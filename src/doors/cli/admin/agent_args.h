/* An agent's settings as options, for agent add and agent set. */
#ifndef COOP_CLI_AGENT_ARGS_H
#define COOP_CLI_AGENT_ARGS_H

#include "doors/cli/sandbox_args.h"

/* Stands first in the settings of both verbs. */
struct cli_agent {
	const char *principal, *mode;
	struct cli_number max_running, max_buffer_bytes, max_finished;
	bool persistent, restricted;
	struct cli_list workspace, deny_commands, allow_commands, deny_patterns, risks;
	struct cli_list env, metadata;
	struct cli_number expires_in_ms;
	struct cli_sandbox sandbox; /* ceilings */
};

#define CLI_AGENT_RISKS                                                                           \
	"destructive, write_intent, curl_pipe_shell, credential_file_read, network_exfil, sudo, " \
	"package_install, "                                                                       \
	"git_force_push, process_kill, outside_workspace, deny_pattern"

#define CLI_AGENT_ROW(MEMBER, ...) CLI_ARG(#MEMBER, offsetof(struct cli_agent, MEMBER), __VA_ARGS__)
/* Of a policy the interface knows no members. */
#define CLI_POLICY_ROW(NAME, KIND, MEMBER, FIELD, ARGUMENT, HELP)                                  \
	{                                                                                          \
		NAME, 0, KIND, offsetof(struct cli_agent, MEMBER), "policy." FIELD, ARGUMENT, HELP \
	}

/* Rows of an option table. */
#define CLI_AGENT_ROWS                                                                             \
	CLI_AGENT_ROW(max_running, "processes at a time, those of agents below it included"),      \
		CLI_AGENT_ROW(max_buffer_bytes,                                                    \
			      "memory for output, that of agents below it included"),              \
		CLI_AGENT_ROW(max_finished, "finished processes that are kept with their output"), \
		CLI_AGENT_ROW(persistent, "it may use --lease persistent"),                        \
		CLI_AGENT_ROW(restricted,                                                          \
			      "it may not set variables by which code is slipped into programs "   \
			      "(LD_PRELOAD, …)"),                                                  \
		CLI_AGENT_ROW(workspace,                                                           \
			      "its commands start in this folder or below it and may change "      \
			      "that; without one they change nothing; may be repeated"),           \
		CLI_AGENT_ROW(env,                                                                 \
			      "a variable that its own commands have unless they say otherwise; "  \
			      "the value is never shown; may be repeated"),                        \
		CLI_AGENT_ROW(metadata, "words of yours that are shown with it; may be repeated"), \
		CLI_AGENT_ROW(                                                                     \
			expires_in_ms,                                                             \
			"it is removed, with all that it runs, when so much time has passed",      \
			.argument = "TIME"),                                                       \
		CLI_POLICY_ROW(                                                                    \
			"deny-command", CLI_LIST, deny_commands, "denied_commands", "COMMAND",     \
			"a program, by name or path, that it may not run; may be repeated"),       \
		CLI_POLICY_ROW("allow-command", CLI_LIST, allow_commands, "allowed_commands",      \
			       "COMMAND",                                                          \
			       "it may run only these; may be repeated, \"\" alone: none"),        \
		CLI_POLICY_ROW("deny-pattern", CLI_LIST, deny_patterns, "deny_patterns",           \
			       "PATTERN",                                                          \
			       "command lines that fit this (a glob) or contain it are blocked; "  \
			       "may be repeated"),                                                 \
		CLI_POLICY_ROW(                                                                    \
			"risk", CLI_PAIRS, risks, "risk", "LABEL=ACTION",                          \
			"allow, require_approval or deny what has this label: " CLI_AGENT_RISKS),  \
		CLI_POLICY_ROW("mode", CLI_CHOICE, mode, "mode", "enforce|dry_run|explain_only",   \
			       "what becomes of commands: judged and run, or only judged"),        \
		CLI_SANDBOX_AGENT_ROWS(struct cli_agent)

/* Adds what the rows have in common to the request's arguments: paths made absolute, an empty list
 * where "" asks for one. 0, or negative with *error filled. */
int cli_agent_args(const struct cli *cli, const struct cli_agent *agent, json_t *args,
		   struct coop_error *error);

/* Says all about an agent; a cli_show for results {"agent": AGENT}. */
bool cli_agent_show(const struct cli *cli, const char *id, const json_t *result);

#endif
