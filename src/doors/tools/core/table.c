#include "doors/tools/core/table.h"

#include <stddef.h>
#include <string.h>

/* In alphabetical order, which tools/list promises. */
static const struct coop_tool *const tools[] = {
	&coop_tool_cancel_handle,       &coop_tool_close_shell,
	&coop_tool_close_stdin,         &coop_tool_kill_process,
	&coop_tool_list_handles,        &coop_tool_list_processes,
	&coop_tool_next_completions,    &coop_tool_open_shell,
	&coop_tool_process_exec,        &coop_tool_process_kill,
	&coop_tool_process_poll,        &coop_tool_process_release,
	&coop_tool_process_spawn,       &coop_tool_process_wait,
	&coop_tool_process_stats,       &coop_tool_read_command_output,
	&coop_tool_read_process_output, &coop_tool_read_screen,
	&coop_tool_release_process,     &coop_tool_run_command,
	&coop_tool_shell_batch,         &coop_tool_shell_expect,
	&coop_tool_shell_expect_cases,  &coop_tool_shell_read,
	&coop_tool_shell_signal,        &coop_tool_shell_write,
	&coop_tool_stop_process,        &coop_tool_wait_any,
	&coop_tool_wait_command,        &coop_tool_wait_command_output,
	&coop_tool_wait_for_process,    &coop_tool_write_stdin,
};

const struct coop_tool *coop_tool_find(const char *name)
{
	for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++)
		if (strcmp(tools[i]->name, name) == 0)
			return tools[i];
	return NULL;
}

const struct coop_tool *coop_tool_at(size_t index)
{
	return index < sizeof tools / sizeof tools[0] ? tools[index] : NULL;
}
