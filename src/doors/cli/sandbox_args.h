/* What is asked of a sandbox, as options: for verbs that start a command, and for the ceilings of
 * agents. */
#ifndef COOP_CLI_SANDBOX_ARGS_H
#define COOP_CLI_SANDBOX_ARGS_H

#include "doors/cli/cli.h"

/* The member `sandbox` of the settings of a verb that has the rows below. */
struct cli_sandbox {
	const char *profile, *workspace, *network, *home, *root;
	struct cli_list write, read, deny_write, deny_read, protect, require, tolerate;
	struct cli_number memory, cpus, pids, cpu_time, files, file_size, tmp_size;
};

#define CLI_SANDBOX_ROW(T, NAME, KIND, MEMBER, FIELD, ARGUMENT, HELP)             \
	{                                                                         \
		NAME, 0, KIND, offsetof(T, sandbox.MEMBER), FIELD, ARGUMENT, HELP \
	}

/* Rows of an option table. T is the struct that has the member; LEAD stands in front of what help
 * says. */
#define CLI_SANDBOX_LEVEL_ROWS(T, LEAD)                                                          \
	CLI_SANDBOX_ROW(T, "profile", CLI_TEXT, profile, "sandbox.profile", "PROFILE",           \
			LEAD "read-only, workspace-write (usual), full, or one of coop.conf"),   \
		CLI_SANDBOX_ROW(T, "net", CLI_CHOICE, network, "sandbox.network",                \
				"none|loopback|allowlist|host",                                  \
				LEAD "no network, one shared by the session alone (usual), or "  \
				     "that of the host; allowlist cannot be had yet"),           \
		CLI_SANDBOX_ROW(T, "home", CLI_CHOICE, home, "sandbox.home",                     \
				"cow|read-only|hidden",                                          \
				LEAD "the home folder: writes vanish with the command (cow, "    \
				     "usual), fail, or nothing of it is seen"),                  \
		CLI_SANDBOX_ROW(T, "root", CLI_CHOICE, root, "sandbox.root", "host|minimal",     \
				LEAD "all files of the host to be seen (usual), or only system " \
				     "folders and what is named")

#define CLI_SANDBOX_DENY_ROWS(T)                                                                  \
	CLI_SANDBOX_ROW(T, "deny-read", CLI_LIST, deny_read, "sandbox.deny_read", "PATH",         \
			"not to be seen: a file, folder or pattern; may be repeated"),            \
		CLI_SANDBOX_ROW(T, "deny-write", CLI_LIST, deny_write, "sandbox.deny_write",      \
				"PATH", "read-only inside what is writable; may be repeated"),    \
		CLI_SANDBOX_ROW(T, "protect", CLI_LIST, protect, "sandbox.protect", "PATH",       \
				"read-only in every writable folder, besides .git/hooks and the " \
				"like; may be repeated"),                                         \
		CLI_SANDBOX_ROW(T, "require", CLI_LIST, require, "sandbox.require", "NAME",       \
				"refuse to start without this protection (coop doctor lists "     \
				"them); may be repeated")

/* WHOSE says what the first three count. */
#define CLI_SANDBOX_LIMIT_ROWS(T, WHOSE)                                                          \
	CLI_SANDBOX_ROW(T, "mem", CLI_SIZE, memory, "limits.memory_bytes", "SIZE",                \
			"memory at most, as in 512M, of " WHOSE),                                 \
		CLI_SANDBOX_ROW(T, "cpus", CLI_SHARE, cpus, "limits.cpu_quota", "N",              \
				"processors at most, as in 1.5, of " WHOSE),                      \
		CLI_SANDBOX_ROW(T, "pids", CLI_COUNT, pids, "limits.max_pids", "N",               \
				"processes and threads at most, of " WHOSE),                      \
		CLI_SANDBOX_ROW(T, "cpu-time", CLI_SECONDS, cpu_time, "limits.max_cpu_secs",      \
				"DURATION",                                                       \
				"processor time of each process at most, in whole seconds"),      \
		CLI_SANDBOX_ROW(T, "files", CLI_COUNT, files, "limits.max_open_files", "N",       \
				"open files of each process at most"),                            \
		CLI_SANDBOX_ROW(T, "fsize", CLI_SIZE, file_size, "limits.max_file_bytes", "SIZE", \
				"size at most of a file that is written"),                        \
		CLI_SANDBOX_ROW(T, "tmp-size", CLI_SIZE, tmp_size, "limits.tmp_bytes", "SIZE",    \
				"what fits into the command's own /tmp at most")

/* All that a command can be started with. */
#define CLI_SANDBOX_ROWS(T)                                                                       \
	CLI_SANDBOX_LEVEL_ROWS(T, ""),                                                            \
		CLI_SANDBOX_ROW(T, "workspace", CLI_TEXT, workspace, "sandbox.workspace",         \
				"FOLDER",                                                         \
				"the folder that it may change (the one it runs in; not in / or " \
				"in the home folder itself); from elsewhere it runs in there"),   \
		CLI_SANDBOX_ROW(T, "write", CLI_LIST, write, "sandbox.allow_write", "FOLDER",     \
				"another folder that it may change; may be repeated"),            \
		CLI_SANDBOX_ROW(T, "read", CLI_LIST, read, "sandbox.allow_read", "PATH",          \
				"with --root minimal: also to be seen; may be repeated"),         \
		CLI_SANDBOX_DENY_ROWS(T),                                                         \
		CLI_SANDBOX_ROW(T, "tolerate", CLI_LIST, tolerate, "sandbox.tolerate", "NAME",    \
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
int cli_sandbox_args(const struct cli_sandbox *sandbox, json_t *args, struct coop_error *error);

#endif
