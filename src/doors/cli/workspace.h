/* The folder that a command may change, where nobody named one. */
#ifndef COOP_CLI_WORKSPACE_H
#define COOP_CLI_WORKSPACE_H

#include "doors/cli/sandbox_args.h"

/* Adds the folder in which the command is to run (`cwd`, as typed; NULL: this one) as its
 * workspace, unless --workspace or a profile without one was given, or the agent (NULL: the one
 * that asks) is bound to folders of its own: of those the keeper takes the right one. In a folder
 * that can be no workspace the profile becomes read-only, which is said on stderr. With --workspace
 * and no `cwd` a command that would stand outside of it runs in it. The connection is open. */
void cli_workspace_add(struct cli *cli, const struct cli_sandbox *sandbox, const char *cwd,
		       const char *agent, json_t *args);

/* NULL, or why the folder, by its canonical name, can be no workspace. */
const char *cli_workspace_refused(const char *folder);

#endif
