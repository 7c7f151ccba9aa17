/* What is asked of a sandbox, as options: for verbs that start a command, and for the ceilings of
 * agents. */
#ifndef COOP_CLI_SANDBOX_ARGS_H
#define COOP_CLI_SANDBOX_ARGS_H

#include "doors/cli/cli.h"

/* The member `sandbox` of the settings of a verb that has the rows below: arguments by their
 * names. */
struct cli_sandbox {
	const char *profile, *workspace, *network, *home, *root;
	struct cli_list allow_write, allow_read, deny_write, deny_read, protect, require, tolerate;
	struct cli_number memory_bytes, cpu_quota, max_pids, max_cpu_secs, max_open_files,
		max_file_bytes, tmp_bytes;
};

#define CLI_SANDBOX_ROW(T, MEMBER, HELP) \
	CLI_ARG("sandbox." #MEMBER, offsetof(T, sandbox.MEMBER), HELP)
#define CLI_LIMIT_ROW(T, MEMBER, HELP) CLI_ARG("limits." #MEMBER, offsetof(T, sandbox.MEMBER), HELP)

/* Rows of an option table. T is the struct that has the member; LEAD stands in front of what help
 * says. */
#define CLI_SANDBOX_LEVEL_ROWS(T, LEAD)                                                          \
	CLI_SANDBOX_ROW(T, profile,                                                              \
			LEAD "read-only, workspace-write (usual), full, or one of coop.conf"),   \
		CLI_SANDBOX_ROW(T, network,                                                      \
				LEAD "no network, one shared by the session alone (usual), or "  \
				     "that of the host; allowlist cannot be had yet"),           \
		CLI_SANDBOX_ROW(T, home,                                                         \
				LEAD "the home folder: writes vanish with the command (cow, "    \
				     "usual), fail, or nothing of it is seen"),                  \
		CLI_SANDBOX_ROW(T, root,                                                         \
				LEAD "all files of the host to be seen (usual), or only system " \
				     "folders and what is named")

#define CLI_SANDBOX_DENY_ROWS(T)                                                                  \
	CLI_SANDBOX_ROW(T, deny_read,                                                             \
			"not to be seen: a file, folder or pattern; may be repeated"),            \
		CLI_SANDBOX_ROW(T, deny_write,                                                    \
				"read-only inside what is writable; may be repeated"),            \
		CLI_SANDBOX_ROW(T, protect,                                                       \
				"read-only in every writable folder, besides .git/hooks and the " \
				"like; may be repeated"),                                         \
		CLI_SANDBOX_ROW(T, require,                                                       \
				"refuse to start without this protection (coop doctor lists "     \
				"them); may be repeated")

/* WHOSE says what the first three count. */
#define CLI_SANDBOX_LIMIT_ROWS(T, WHOSE)                                                    \
	CLI_LIMIT_ROW(T, memory_bytes, "memory at most, as in 512M, of " WHOSE),            \
		CLI_LIMIT_ROW(T, cpu_quota, "processors at most, as in 1.5, of " WHOSE),    \
		CLI_LIMIT_ROW(T, max_pids, "processes and threads at most, of " WHOSE),     \
		CLI_LIMIT_ROW(T, max_cpu_secs,                                              \
			      "processor time of each process at most, in whole seconds"),  \
		CLI_LIMIT_ROW(T, max_open_files, "open files of each process at most"),     \
		CLI_LIMIT_ROW(T, max_file_bytes, "size at most of a file that is written"), \
		CLI_LIMIT_ROW(T, tmp_bytes, "what fits into the command's own /tmp at most")

/* All that a command can be started with. */
#define CLI_SANDBOX_ROWS(T)                                                                       \
	CLI_SANDBOX_LEVEL_ROWS(T, ""),                                                            \
		CLI_SANDBOX_ROW(T, workspace,                                                     \
				"the folder that it may change (the one it runs in; not in / or " \
				"in the home folder itself); from elsewhere it runs in there"),   \
		CLI_SANDBOX_ROW(T, allow_write,                                                   \
				"another folder that it may change; may be repeated"),            \
		CLI_SANDBOX_ROW(T, allow_read,                                                    \
				"with --root minimal: also to be seen; may be repeated"),         \
		CLI_SANDBOX_DENY_ROWS(T),                                                         \
		CLI_SANDBOX_ROW(T, tolerate,                                                      \
				"start also where this protection cannot be had; may be "         \
				"repeated"),                                                      \
		CLI_SANDBOX_LIMIT_ROWS(T, "it with all that it starts")

/* The ceilings of an agent. */
#define CLI_SANDBOX_AGENT_ROWS(T)                                         \
	CLI_SANDBOX_LEVEL_ROWS(T, "at most: "), CLI_SANDBOX_DENY_ROWS(T), \
		CLI_SANDBOX_LIMIT_ROWS(T,                                 \
				       "all its commands and those of agents below it together")

/* NULL, or the row of a limit that was given as 0, which is none. */
const struct cli_option *cli_sandbox_zero(const struct cli_option *options, const void *settings);

/* Makes the paths in what cli_options_fields() wrote absolute; the workspace, and what is to be
 * written to or seen, must be there, is without links then, and the keeper is told so (`names`). 0,
 * or negative with *error filled. */
int cli_sandbox_args(const struct cli *cli, const struct cli_sandbox *sandbox, json_t *args,
		     struct coop_error *error);

#endif
