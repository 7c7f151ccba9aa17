/* An agent's settings as options, for agent add and agent set. */
#ifndef COOP_CLI_AGENT_ARGS_H
#define COOP_CLI_AGENT_ARGS_H

#include "doors/cli/sandbox_args.h"

/* Stands first in the settings of both verbs. */
struct cli_agent {
	const char *principal, *mode;
	struct cli_number max_running, max_buffer, max_finished;
	bool persistent, restricted;
	struct cli_list workspace, deny_commands, allow_commands, deny_patterns, risks;
	struct cli_list env, metadata;
	struct cli_number expires;
	struct cli_sandbox sandbox; /* ceilings */
};

#define CLI_AGENT_RISKS                                                                           \
	"destructive, write_intent, curl_pipe_shell, credential_file_read, network_exfil, sudo, " \
	"package_install, "                                                                       \
	"git_force_push, process_kill, outside_workspace, deny_pattern"

/* Rows of an option table. */
#define CLI_AGENT_ROWS                                                                            \
	{"max-running",                                                                           \
	 0,                                                                                       \
	 CLI_COUNT,                                                                               \
	 offsetof(struct cli_agent, max_running),                                                 \
	 "max_running",                                                                           \
	 "N",                                                                                     \
	 "processes at a time, those of agents below it included"},                               \
		{"max-buffer",                                                                    \
		 0,                                                                               \
		 CLI_SIZE,                                                                        \
		 offsetof(struct cli_agent, max_buffer),                                          \
		 "max_buffer_bytes",                                                              \
		 "SIZE",                                                                          \
		 "memory for output, that of agents below it included"},                          \
		{"max-finished",                                                                  \
		 0,                                                                               \
		 CLI_COUNT,                                                                       \
		 offsetof(struct cli_agent, max_finished),                                        \
		 "max_finished",                                                                  \
		 "N",                                                                             \
		 "finished processes that are kept with their output"},                           \
		{"persistent",                                                                    \
		 0,                                                                               \
		 CLI_FLAG,                                                                        \
		 offsetof(struct cli_agent, persistent),                                          \
		 "persistent",                                                                    \
		 NULL,                                                                            \
		 "it may use --lease persistent"},                                                \
		{"restricted",                                                                    \
		 0,                                                                               \
		 CLI_FLAG,                                                                        \
		 offsetof(struct cli_agent, restricted),                                          \
		 "restricted",                                                                    \
		 NULL,                                                                            \
		 "it may not set variables by which code is slipped into programs (LD_PRELOAD, "  \
		 "…)"},                                                                           \
		{"workspace",                                                                     \
		 0,                                                                               \
		 CLI_LIST,                                                                        \
		 offsetof(struct cli_agent, workspace),                                           \
		 "workspace",                                                                     \
		 "FOLDER",                                                                        \
		 "its commands start in this folder or below it and may change that; without "    \
		 "one they change nothing; may be repeated"},                                     \
		{"env",                                                                           \
		 0,                                                                               \
		 CLI_PAIRS,                                                                       \
		 offsetof(struct cli_agent, env),                                                 \
		 "env",                                                                           \
		 "NAME=VALUE",                                                                    \
		 "a variable that its own commands have unless they say otherwise; the value is " \
		 "never shown; may be repeated"},                                                 \
		{"metadata",                                                                      \
		 0,                                                                               \
		 CLI_PAIRS,                                                                       \
		 offsetof(struct cli_agent, metadata),                                            \
		 "metadata",                                                                      \
		 "KEY=VALUE",                                                                     \
		 "words of yours that are shown with it; may be repeated"},                       \
		{"expires",                                                                       \
		 0,                                                                               \
		 CLI_DURATION,                                                                    \
		 offsetof(struct cli_agent, expires),                                             \
		 "expires_in_ms",                                                                 \
		 "TIME",                                                                          \
		 "it is removed, with all that it runs, when so much time has passed"},           \
		{"deny-command",                                                                  \
		 0,                                                                               \
		 CLI_LIST,                                                                        \
		 offsetof(struct cli_agent, deny_commands),                                       \
		 "policy.denied_commands",                                                        \
		 "COMMAND",                                                                       \
		 "a program, by name or path, that it may not run; may be repeated"},             \
		{"allow-command",                                                                 \
		 0,                                                                               \
		 CLI_LIST,                                                                        \
		 offsetof(struct cli_agent, allow_commands),                                      \
		 "policy.allowed_commands",                                                       \
		 "COMMAND",                                                                       \
		 "it may run only these; may be repeated, \"\" alone: none"},                     \
		{"deny-pattern",                                                                  \
		 0,                                                                               \
		 CLI_LIST,                                                                        \
		 offsetof(struct cli_agent, deny_patterns),                                       \
		 "policy.deny_patterns",                                                          \
		 "PATTERN",                                                                       \
		 "command lines that fit this (a glob) or contain it are blocked; may be "        \
		 "repeated"},                                                                     \
		{"risk",                                                                          \
		 0,                                                                               \
		 CLI_PAIRS,                                                                       \
		 offsetof(struct cli_agent, risks),                                               \
		 "policy.risk",                                                                   \
		 "LABEL=ACTION",                                                                  \
		 "allow, require_approval or deny what has this label: " CLI_AGENT_RISKS},        \
		{"mode",                                                                          \
		 0,                                                                               \
		 CLI_CHOICE,                                                                      \
		 offsetof(struct cli_agent, mode),                                                \
		 "policy.mode",                                                                   \
		 "enforce|dry_run|explain_only",                                                  \
		 "what becomes of commands: judged and run, or only judged"},                     \
		CLI_SANDBOX_AGENT_ROWS(struct cli_agent)

/* Adds what the rows have in common to the request's arguments: paths made absolute, an empty list
 * where "" asks for one. 0, or negative with *error filled. */
int cli_agent_args(const struct cli_option *options, const struct cli_agent *agent, json_t *args,
		   struct coop_error *error);

/* Says all about an agent; a cli_show for results {"agent": AGENT}. */
bool cli_agent_show(const struct cli *cli, const char *id, const json_t *result);

#endif
