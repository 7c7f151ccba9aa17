#include "keeper/ops/ops.h"

#include <string.h>

#include "base/clock.h"
#include "interface/err.h"
#include "interface/operations.h"
#include "interface/schema.h"
#include "keeper/agents/op_agent.h"
#include "keeper/agents/sessions.h"
#include "keeper/agents/token.h"
#include "keeper/confine/ceiling.h"
#include "keeper/confine/draft.h"
#include "keeper/confine/freeze.h"
#include "keeper/link/connection.h"
#include "keeper/link/request.h"
#include "keeper/ops/follow.h"
#include "keeper/ops/notices.h"
#include "keeper/ops/op_cancel.h"
#include "keeper/ops/op_doctor.h"
#include "keeper/ops/op_end.h"
#include "keeper/ops/op_look.h"
#include "keeper/ops/op_operator.h"
#include "keeper/ops/op_port.h"
#include "keeper/ops/op_read.h"
#include "keeper/ops/op_reader.h"
#include "keeper/ops/op_spawn.h"
#include "keeper/ops/op_stdin.h"
#include "keeper/ops/op_wait.h"
#include "keeper/process/completions.h"
#include "keeper/process/holder.h"
#include "keeper/process/lookup.h"
#include "keeper/process/note.h"
#include "keeper/process/process.h"

static const struct coop_op table[] = {
	{&coop_operation_spawn, coop_op_spawn, .refused = coop_op_spawn_invalid,
	 .traits = COOP_OP_LOOKS},
	{&coop_operation_check, coop_op_check, .traits = COOP_OP_LOOKS},
	{&coop_operation_list, coop_op_list, .traits = COOP_OP_RELIEVES},
	{&coop_operation_status, coop_op_status, .traits = COOP_OP_RELIEVES},
	{&coop_operation_wait, coop_op_wait},
	{&coop_operation_wait_port, coop_op_wait_port},
	{&coop_operation_read, coop_op_read},
	{&coop_operation_reader, coop_op_reader},
	{&coop_operation_follow, coop_op_follow},
	{&coop_operation_hold, coop_op_hold},
	{&coop_operation_note, coop_op_note},
	{&coop_operation_write_stdin, coop_op_write_stdin},
	{&coop_operation_close_stdin, coop_op_close_stdin},
	{&coop_operation_resize, coop_op_resize},
	{&coop_operation_signal, coop_op_signal, .traits = COOP_OP_RELIEVES},
	{&coop_operation_freeze, coop_op_freeze},
	{&coop_operation_thaw, coop_op_thaw, .traits = COOP_OP_RELIEVES},
	{&coop_operation_kill, coop_op_kill, .traits = COOP_OP_RELIEVES},
	{&coop_operation_stop, coop_op_stop, .traits = COOP_OP_RELIEVES},
	{&coop_operation_release, coop_op_release, .traits = COOP_OP_RELIEVES},
	{&coop_operation_keep, coop_op_keep},
	{&coop_operation_gc, coop_op_gc, .traits = COOP_OP_RELIEVES},
	{&coop_operation_cancel, coop_op_cancel, .traits = COOP_OP_RELIEVES},
	{&coop_operation_completions, coop_op_completions},
	{&coop_operation_session_new, coop_op_session_new},
	{&coop_operation_session_end, coop_op_session_end, .traits = COOP_OP_RELIEVES},
	{&coop_operation_session_list, coop_op_session_list},
	{&coop_operation_login, coop_op_login, .refused = coop_op_login_invalid,
	 .traits = COOP_OP_RELIEVES},
	{&coop_operation_ceiling, coop_op_ceiling, .traits = COOP_OP_LOOKS},
	{&coop_operation_agent_add, coop_op_agent_add, .traits = COOP_OP_LOOKS},
	{&coop_operation_agent_list, coop_op_agent_list, .traits = COOP_OP_RELIEVES},
	{&coop_operation_agent_show, coop_op_agent_show, .traits = COOP_OP_RELIEVES},
	{&coop_operation_agent_set, coop_op_agent_set, .traits = COOP_OP_LOOKS},
	{&coop_operation_agent_remove, coop_op_agent_remove},
	{&coop_operation_token_new, coop_op_token_new},
	{&coop_operation_token_list, coop_op_token_list},
	{&coop_operation_token_revoke, coop_op_token_revoke},
	{&coop_operation_history, coop_op_history},
	{&coop_operation_follow_events, coop_op_follow_events},
	{&coop_operation_audit_tail, coop_op_audit_tail},
	{&coop_operation_audit_verify, coop_op_audit_verify},
	{&coop_operation_reload, coop_op_reload, .traits = COOP_OP_LOOKS},
	{&coop_operation_doctor, coop_op_doctor, .traits = COOP_OP_LOOKS},
	{&coop_operation_metrics, coop_op_metrics},
	{&coop_operation_info, coop_op_info, .traits = COOP_OP_RELIEVES},
	{&coop_operation_shutdown, coop_op_shutdown, .traits = COOP_OP_RELIEVES},
	{&coop_operation_list_shells, coop_op_list_shells},
	{&coop_operation_describe, coop_op_describe},
};

const struct coop_op *coop_ops_row(size_t index)
{
	return index < sizeof table / sizeof table[0] ? &table[index] : NULL;
}

const struct coop_op *coop_ops_find(const char *name)
{
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		if (!strcmp(table[i].row->name, name))
			return &table[i];
	}
	return NULL;
}

const char *coop_right_name(enum coop_right right)
{
	static const char *const names[] = {"none", "look", "use", "manage"};

	return names[right];
}

int coop_ops_allowed(const struct coop_request *request, struct coop_err *err)
{
	const struct coop_conn *conn = request->conn;

	if (request->op->row->right == COOP_RIGHT_NONE)
		return 0;
	if (!conn->agent)
		return coop_err_set(err, COOP_PERMISSION_DENIED,
				    "this connection acts as no agent: log in first");
	/* The wall clock may have been set: the connection's own one does not notice. */
	if (conn->expires_at && conn->expires_at <= coop_clock_wall_ms())
		return coop_err_set(err, COOP_PERMISSION_DENIED, "the token has expired");
	if (request->op->row->right == COOP_RIGHT_MANAGE && !conn->is_operator)
		return coop_err_set(err, COOP_PERMISSION_DENIED,
				    "%s is for the operator: the keeper's user, without a token",
				    request->op->row->name);
	return 0;
}
