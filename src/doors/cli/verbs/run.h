/* The two halves of coop run: what is asked of the keeper, and the foreground. */
#ifndef COOP_CLI_RUN_H
#define COOP_CLI_RUN_H

#include "base/buf.h"
#include "doors/cli/sandbox_args.h"

struct cli_run {
	bool detach, terminal, interactive, no_stdin, merge, shell, login, text;
	const char *tag, *why, *task, *cwd, *env_mode, *overflow, *on_exit, *on_output_quota,
		*lease, *use_shell, *session, *call_id;
	struct cli_list env, env_remove, inject;
	struct cli_number timeout, timeout_grace, idle_timeout, lifetime, retention, ring, cols,
		rows;
	struct cli_sandbox sandbox;
};

extern const struct cli_option cli_run_options[];

/* Is this program's stdin forwarded to the command? */
bool cli_run_forwards_stdin(const struct cli_run *run);

/* The arguments of spawn, all but base_env and a workspace that was not named, and its bytes, to be
 * cleared in any case. NULL with *error filled. */
json_t *cli_run_args(const struct cli *cli, size_t count, char **words, struct coop_buf *data,
		     struct coop_error *error);

/* The exit code for a command that could not be started: 127 not found, 126 cannot be executed or
 * may not be, 125 else. */
int cli_run_refused(const struct coop_error *error);

/* Starts it and stays until it has ended. Takes over `args`, and what is in `data`; the connection
 * is open. Returns the exit code. */
int cli_run_foreground(struct cli *cli, const struct cli_run *run, json_t *args,
		       struct coop_buf *data);

#endif
