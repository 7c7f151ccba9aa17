/* Verbs that run a program of their own beside this one, which offers the tools: where and how what
 * it starts may work. */
#ifndef COOP_CLI_DOOR_H
#define COOP_CLI_DOOR_H

#include "doors/cli/sandbox_args.h"

/* The member `door` of the settings of a verb that has the rows below. */
struct cli_door {
	struct cli_sandbox sandbox; /* profile and workspace */
	const char *agent, *session;
	bool no_workspace, private_keeper;
};

#define CLI_DOOR_ROWS(T)                                                                       \
	{"profile",                                                                            \
	 0,                                                                                    \
	 CLI_TEXT,                                                                             \
	 offsetof(T, door.sandbox.profile),                                                    \
	 "sandbox.profile",                                                                    \
	 "PROFILE",                                                                            \
	 "of what is started: read-only, workspace-write (usual), full, or one of coop.conf"}, \
		{"workspace",                                                                  \
		 0,                                                                            \
		 CLI_TEXT,                                                                     \
		 offsetof(T, door.sandbox.workspace),                                          \
		 "sandbox.workspace",                                                          \
		 "FOLDER",                                                                     \
		 "the folder that it may change (this one)"},                                  \
		{"no-workspace",      0, CLI_FLAG, offsetof(T, door.no_workspace), NULL, NULL, \
		 "it may change none"},                                                        \
		{"agent",                                                                      \
		 0,                                                                            \
		 CLI_TEXT,                                                                     \
		 offsetof(T, door.agent),                                                      \
		 NULL,                                                                         \
		 "NAME",                                                                       \
		 "act as this agent below yours; one that is not there is made, with the "     \
		 "workspace as its own"},                                                      \
	{                                                                                      \
		"session", 0, CLI_TEXT, offsetof(T, door.session), NULL, "ID",                 \
			"start everything in this session (coop session new)"                  \
	}

/* The words of the program's command line, `more` (ends with NULL) behind them, and executes it.
 * Returns only on failure, with the exit code. */
int cli_door_exec(struct cli *cli, const char *program, const struct cli_door *door,
		  const char *const *more);

#endif
