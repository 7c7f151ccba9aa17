/* The operations: one row each, which the keeper carries out and every door translates. */
#ifndef COOP_INTERFACE_OPERATIONS_H
#define COOP_INTERFACE_OPERATIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "interface/schema.h"

/* What a caller must be: anybody who is connected; an agent that may look at the process; the agent
 * that owns it; the operator. */
enum coop_right { COOP_RIGHT_NONE, COOP_RIGHT_LOOK, COOP_RIGHT_USE, COOP_RIGHT_MANAGE };

struct coop_operation {
	const char *name, *summary;
	enum coop_right right;
	bool waits;      /* may stay open for as long as it takes */
	size_t data_max; /* bytes that a request may bring */
	const struct coop_field *args, *result;
};

extern const struct coop_operation coop_operation_spawn, coop_operation_check, coop_operation_list,
	coop_operation_status, coop_operation_wait, coop_operation_wait_port, coop_operation_read,
	coop_operation_reader, coop_operation_follow, coop_operation_hold, coop_operation_note,
	coop_operation_write_stdin, coop_operation_close_stdin, coop_operation_resize,
	coop_operation_signal, coop_operation_freeze, coop_operation_thaw, coop_operation_kill,
	coop_operation_stop, coop_operation_release, coop_operation_keep, coop_operation_gc,
	coop_operation_cancel, coop_operation_completions, coop_operation_session_new,
	coop_operation_session_end, coop_operation_session_list, coop_operation_login,
	coop_operation_ceiling, coop_operation_agent_add, coop_operation_agent_list,
	coop_operation_agent_show, coop_operation_agent_set, coop_operation_agent_remove,
	coop_operation_token_new, coop_operation_token_list, coop_operation_token_revoke,
	coop_operation_history, coop_operation_follow_events, coop_operation_audit_tail,
	coop_operation_audit_verify, coop_operation_reload, coop_operation_doctor,
	coop_operation_metrics, coop_operation_info, coop_operation_shutdown,
	coop_operation_list_shells, coop_operation_describe;

#endif
