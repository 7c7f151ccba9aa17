#include "keeper/ops.h"

#include <string.h>

#include "keeper/fields.h"
#include "keeper/follow.h"
#include "keeper/keeper.h"
#include "keeper/op_end.h"
#include "keeper/op_look.h"
#include "keeper/op_read.h"
#include "keeper/op_spawn.h"
#include "keeper/op_stdin.h"
#include "keeper/op_wait.h"
#include "keeper/process.h"
#include "keeper/request.h"

#define SPAWN_DATA_MAX (4u << 20)
#define STDIN_DATA_MAX (1u << 20)

static const struct coop_op table[] = {
	{"spawn", "start a command", "use", true, SPAWN_DATA_MAX, coop_fields_spawn,
	 coop_results_process, coop_op_spawn},
	{"list", "processes in the order of their start", "look", false, 0, coop_fields_list,
	 coop_results_processes, coop_op_list},
	{"status", "one or several records", "look", false, 0, coop_fields_status,
	 coop_results_status, coop_op_status},
	{"wait", "answer when a process has ended", "look", true, 0, coop_fields_wait,
	 coop_results_wait, coop_op_wait},
	{"read", "retained output from a position", "look", false, 0, coop_fields_read,
	 coop_results_read, coop_op_read},
	{"follow", "output as it comes, until the end", "look", true, 0, coop_fields_follow,
	 coop_results_follow, coop_op_follow},
	{"write_stdin", "send input", "use", true, STDIN_DATA_MAX, coop_fields_write_stdin,
	 coop_results_write_stdin, coop_op_write_stdin},
	{"close_stdin", "send end of file", "use", true, 0, coop_fields_id,
	 coop_results_close_stdin, coop_op_close_stdin},
	{"resize", "change the size of a terminal", "use", false, 0, coop_fields_resize,
	 coop_results_resize, coop_op_resize},
	{"signal", "send one signal", "use", false, 0, coop_fields_signal, coop_results_signal,
	 coop_op_signal},
	{"kill", "kill the whole tree and prove it", "use", true, 0, coop_fields_id,
	 coop_results_receipt, coop_op_kill},
	{"stop", "SIGTERM, grace, then kill", "use", true, 0, coop_fields_stop,
	 coop_results_receipt, coop_op_stop},
	{"release", "forget a process, ending it if it runs", "use", true, 0, coop_fields_release,
	 coop_results_release, coop_op_release},
	{"keep", "let an ephemeral process outlive its connection", "use", false, 0,
	 coop_fields_keep, coop_results_process, coop_op_keep},
	{"gc", "forget everything that has finished", "use", false, 0, coop_fields_none,
	 coop_results_gc, coop_op_gc},
	{"info", "the keeper itself", "look", false, 0, coop_fields_none, coop_results_info,
	 coop_op_info},
	{"shutdown", "end everything and leave", "manage", true, 0, coop_fields_shutdown,
	 coop_results_shutdown, coop_op_shutdown},
	{"list_shells", "shells for mode shell", "look", false, 0, coop_fields_none,
	 coop_results_shells, coop_op_list_shells},
	{"describe", "this table", "look", false, 0, coop_fields_none, coop_results_describe,
	 coop_op_describe},
};

const struct coop_op *coop_ops_row(size_t index)
{
	return index < sizeof table / sizeof table[0] ? &table[index] : NULL;
}

const struct coop_op *coop_ops_find(const char *name)
{
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		if (!strcmp(table[i].name, name))
			return &table[i];
	}
	return NULL;
}

struct coop_process *coop_ops_process(struct coop_request *request)
{
	struct coop_err err;
	struct coop_process *process =
		coop_registry_find(request->keeper, coop_arg_string(request->args, "id", ""), &err);

	if (!process)
		coop_request_fail(request, &err);
	else
		coop_process_touch(process);
	return process;
}
