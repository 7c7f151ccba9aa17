/* All tools. A new one is one row in the file of its kind. */
#ifndef COOP_TOOLS_TABLE_H
#define COOP_TOOLS_TABLE_H

#include "doors/tools/core/tool.h"

/* By name, or NULL. Tools of every set are found. */
const struct coop_tool *coop_tool_find(const char *name);
/* Number `index` in alphabetical order; NULL behind the last. */
const struct coop_tool *coop_tool_at(size_t index);

/* Rows of each file. */
extern const struct coop_tool coop_tool_list_processes, coop_tool_kill_process,
	coop_tool_process_stats, coop_tool_wait_for_process, coop_tool_wait_any,
	coop_tool_read_process_output, coop_tool_read_screen, coop_tool_run_command,
	coop_tool_write_stdin, coop_tool_close_stdin, coop_tool_stop_process,
	coop_tool_release_process;
extern const struct coop_tool coop_tool_open_shell, coop_tool_shell_write, coop_tool_shell_read,
	coop_tool_shell_expect, coop_tool_shell_expect_cases, coop_tool_shell_batch,
	coop_tool_shell_signal, coop_tool_close_shell;
extern const struct coop_tool coop_tool_process_spawn, coop_tool_process_poll,
	coop_tool_process_wait, coop_tool_process_kill, coop_tool_process_release,
	coop_tool_process_exec, coop_tool_read_command_output, coop_tool_wait_command,
	coop_tool_wait_command_output, coop_tool_list_handles, coop_tool_cancel_handle,
	coop_tool_next_completions;
/* Forms of tools of the same name. */
extern const struct coop_tool coop_tool_harn_run_command;

#endif
