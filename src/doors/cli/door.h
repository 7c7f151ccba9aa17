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

#define CLI_DOOR_ROW(T, NAME, KIND, MEMBER, ARGUMENT, HELP)                    \
	{                                                                      \
		NAME, 0, KIND, offsetof(T, door.MEMBER), NULL, ARGUMENT, HELP, \
	}

#define CLI_DOOR_ROWS(T)                                                                           \
	CLI_ARG("sandbox.profile", offsetof(T, door.sandbox.profile),                              \
		"of what is started: read-only, workspace-write (usual), full, or one of "         \
		"coop.conf"),                                                                      \
		CLI_ARG("sandbox.workspace", offsetof(T, door.sandbox.workspace),                  \
			"the folder that it may change (this one)"),                               \
		CLI_DOOR_ROW(T, "no-workspace", CLI_FLAG, no_workspace, NULL,                      \
			     "it may change none"),                                                \
		CLI_DOOR_ROW(T, "agent", CLI_TEXT, agent, "NAME",                                  \
			     "act as this agent below yours; one that is not there is made, with " \
			     "the workspace as its own"),                                          \
		CLI_DOOR_ROW(T, "session", CLI_TEXT, session, "ID",                                \
			     "start everything in this session (coop session new)")

/* The words of the program's command line, `more` (ends with NULL) behind them, and executes it.
 * Returns only on failure, with the exit code. */
int cli_door_exec(struct cli *cli, const char *program, const struct cli_door *door,
		  const char *const *more);

#endif
