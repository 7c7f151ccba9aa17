#include "keeper/ops/ops.h"

#include <string.h>

#include "base/clock.h"
#include "interface/bounds.h"
#include "interface/err.h"
#include "interface/fields.h"
#include "keeper/agents/ceiling.h"
#include "keeper/agents/sessions.h"
#include "keeper/agents/token.h"
#include "keeper/core/keeper.h"
#include "keeper/link/connection.h"
#include "keeper/link/request.h"
#include "keeper/ops/follow.h"
#include "keeper/ops/notices.h"
#include "keeper/ops/op_agent.h"
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
#include "keeper/owner/session.h"
#include "keeper/process/completions.h"
#include "keeper/process/holder.h"
#include "keeper/process/lookup.h"
#include "keeper/process/note.h"
#include "keeper/process/process.h"
#include "keeper/start/draft.h"
#include "keeper/tree/freeze.h"

static const struct coop_op table[] = {
	{"spawn", "start a command", COOP_RIGHT_USE, true, COOP_SPAWN_BYTES_MAX, coop_fields_spawn,
	 coop_results_spawn, coop_op_spawn, coop_op_spawn_invalid, COOP_OP_LOOKS},
	{"check", "what policy says of a command", COOP_RIGHT_LOOK, false, COOP_SPAWN_BYTES_MAX,
	 coop_fields_check, coop_results_check, coop_op_check, NULL, COOP_OP_LOOKS},
	{"list", "processes in the order of their start", COOP_RIGHT_LOOK, false, 0,
	 coop_fields_list, coop_results_processes, coop_op_list, NULL, COOP_OP_RELIEVES},
	{"status", "one or several records", COOP_RIGHT_LOOK, false, 0, coop_fields_status,
	 coop_results_status, coop_op_status, NULL, COOP_OP_RELIEVES},
	{"wait", "answer when a process has ended", COOP_RIGHT_LOOK, true, 0, coop_fields_wait,
	 coop_results_wait, coop_op_wait},
	{"wait_port", "answer when a process listens on a port", COOP_RIGHT_LOOK, true, 0,
	 coop_fields_wait_port, coop_results_wait_port, coop_op_wait_port},
	{"read", "retained output from a position", COOP_RIGHT_LOOK, false, 0, coop_fields_read,
	 coop_results_read, coop_op_read},
	{"reader", "where a named reader is, or is from now on", COOP_RIGHT_LOOK, false, 0,
	 coop_fields_reader, coop_results_reader, coop_op_reader},
	{"follow", "output as it comes, until the end", COOP_RIGHT_LOOK, true, 0,
	 coop_fields_follow, coop_results_follow, coop_op_follow},
	{"hold", "let a process wait for a reader rather than lose output", COOP_RIGHT_USE, false,
	 0, coop_fields_hold, coop_results_hold, coop_op_hold},
	{"note", "say something among a process's output", COOP_RIGHT_USE, false, 0,
	 coop_fields_note, coop_results_note, coop_op_note},
	{"write_stdin", "send input", COOP_RIGHT_USE, true, COOP_STDIN_WRITE_MAX,
	 coop_fields_write_stdin, coop_results_write_stdin, coop_op_write_stdin},
	{"close_stdin", "send end of file", COOP_RIGHT_USE, true, 0, coop_fields_id,
	 coop_results_close_stdin, coop_op_close_stdin},
	{"resize", "change the size of a terminal", COOP_RIGHT_USE, false, 0, coop_fields_resize,
	 coop_results_resize, coop_op_resize},
	{"signal", "send one signal", COOP_RIGHT_USE, false, 0, coop_fields_signal,
	 coop_results_signal, coop_op_signal, NULL, COOP_OP_RELIEVES},
	{"freeze", "stop every process of the tree until it is thawed", COOP_RIGHT_USE, true, 0,
	 coop_fields_id, coop_results_frozen, coop_op_freeze},
	{"thaw", "let a frozen tree go on", COOP_RIGHT_USE, true, 0, coop_fields_id,
	 coop_results_frozen, coop_op_thaw, NULL, COOP_OP_RELIEVES},
	{"kill", "kill the whole tree and prove it", COOP_RIGHT_USE, true, 0, coop_fields_id,
	 coop_results_receipt, coop_op_kill, NULL, COOP_OP_RELIEVES},
	{"stop", "SIGTERM, grace, then kill", COOP_RIGHT_USE, true, 0, coop_fields_stop,
	 coop_results_receipt, coop_op_stop, NULL, COOP_OP_RELIEVES},
	{"release", "forget a process, ending it if it runs", COOP_RIGHT_USE, true, 0,
	 coop_fields_release, coop_results_release, coop_op_release, NULL, COOP_OP_RELIEVES},
	{"keep", "let an ephemeral process outlive its connection", COOP_RIGHT_USE, false, 0,
	 coop_fields_keep, coop_results_process, coop_op_keep},
	{"gc", "forget everything that has finished", COOP_RIGHT_USE, false, 0, coop_fields_none,
	 coop_results_gc, coop_op_gc, NULL, COOP_OP_RELIEVES},
	{"cancel", "end what carries a call id, or is named", COOP_RIGHT_USE, true, 0,
	 coop_fields_cancel, coop_results_cancel, coop_op_cancel, NULL, COOP_OP_RELIEVES},
	{"completions", "take what has ended from a session's queue", COOP_RIGHT_USE, true, 0,
	 coop_fields_completions, coop_results_completions, coop_op_completions},
	{"session_new", "begin a group of processes that end together", COOP_RIGHT_USE, false, 0,
	 coop_fields_session_new, coop_results_session, coop_op_session_new},
	{"session_end", "end one, and what is in it", COOP_RIGHT_USE, true, 0,
	 coop_fields_session_end, coop_results_ended, coop_op_session_end, NULL, COOP_OP_RELIEVES},
	{"session_list", "those that have not ended", COOP_RIGHT_LOOK, false, 0, coop_fields_none,
	 coop_results_sessions, coop_op_session_list},
	{"login", "act as a token's agent, or as one below this", COOP_RIGHT_NONE, false, 0,
	 coop_fields_login, coop_results_login, coop_op_login, coop_op_login_invalid,
	 COOP_OP_RELIEVES},
	{"ceiling", "nothing asked for from now on is wider than this", COOP_RIGHT_LOOK, false, 0,
	 coop_fields_ceiling, coop_results_ceiling, coop_op_ceiling, NULL, COOP_OP_LOOKS},
	{"agent_add", "make an agent below this one", COOP_RIGHT_USE, true, 0,
	 coop_fields_agent_add, coop_results_agent, coop_op_agent_add, NULL, COOP_OP_LOOKS},
	{"agent_list", "this agent and those below it", COOP_RIGHT_LOOK, false, 0,
	 coop_fields_agent_list, coop_results_agents, coop_op_agent_list, NULL, COOP_OP_RELIEVES},
	{"agent_show", "one agent", COOP_RIGHT_LOOK, false, 0, coop_fields_agent_show,
	 coop_results_agent, coop_op_agent_show, NULL, COOP_OP_RELIEVES},
	{"agent_set", "change what an agent below this one may", COOP_RIGHT_USE, true, 0,
	 coop_fields_agent_set, coop_results_agent, coop_op_agent_set, NULL, COOP_OP_LOOKS},
	{"agent_remove", "end an agent and all that it and those below it own", COOP_RIGHT_USE,
	 true, 0, coop_fields_agent_remove, coop_results_removed, coop_op_agent_remove},
	{"token_new", "a token for an agent", COOP_RIGHT_USE, true, 0, coop_fields_token_new,
	 coop_results_token, coop_op_token_new},
	{"token_list", "tokens, without what they are", COOP_RIGHT_LOOK, false, 0,
	 coop_fields_agents, coop_results_tokens, coop_op_token_list},
	{"token_revoke", "make a token worthless", COOP_RIGHT_USE, true, 0,
	 coop_fields_token_revoke, coop_results_revoked, coop_op_token_revoke},
	{"history", "processes of the past", COOP_RIGHT_LOOK, true, 0, coop_fields_history,
	 coop_results_history, coop_op_history},
	{"follow_events", "what happens to processes, as it happens", COOP_RIGHT_LOOK, true, 0,
	 coop_fields_follow_events, coop_fields_none, coop_op_follow_events},
	{"audit_tail", "the last lines of the audit", COOP_RIGHT_MANAGE, true, 0,
	 coop_fields_audit_tail, coop_results_audit_tail, coop_op_audit_tail},
	{"audit_verify", "whether the audit is whole", COOP_RIGHT_MANAGE, true, 0,
	 coop_fields_audit_verify, coop_results_audit_verify, coop_op_audit_verify},
	{"reload", "read coop.conf again", COOP_RIGHT_MANAGE, false, 0, coop_fields_none,
	 coop_results_reload, coop_op_reload, NULL, COOP_OP_LOOKS},
	{"doctor", "what the sandbox can hold on this host", COOP_RIGHT_LOOK, false, 0,
	 coop_fields_doctor, coop_results_doctor, coop_op_doctor, NULL, COOP_OP_LOOKS},
	{"metrics", "what happened since the keeper started", COOP_RIGHT_LOOK, false, 0,
	 coop_fields_none, coop_results_metrics, coop_op_metrics},
	{"info", "the keeper itself", COOP_RIGHT_LOOK, false, 0, coop_fields_none,
	 coop_results_info, coop_op_info, NULL, COOP_OP_RELIEVES},
	{"shutdown", "end everything and leave", COOP_RIGHT_MANAGE, true, 0, coop_fields_shutdown,
	 coop_results_shutdown, coop_op_shutdown, NULL, COOP_OP_RELIEVES},
	{"list_shells", "shells for mode shell", COOP_RIGHT_LOOK, false, 0, coop_fields_none,
	 coop_results_shells, coop_op_list_shells},
	{"describe", "this table", COOP_RIGHT_NONE, false, 0, coop_fields_none,
	 coop_results_describe, coop_op_describe},
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

const char *coop_right_name(enum coop_right right)
{
	static const char *const names[] = {"none", "look", "use", "manage"};

	return names[right];
}

int coop_ops_allowed(const struct coop_request *request, struct coop_err *err)
{
	const struct coop_conn *conn = request->conn;

	if (request->op->right == COOP_RIGHT_NONE)
		return 0;
	if (!conn->agent)
		return coop_err_set(err, COOP_PERMISSION_DENIED,
				    "this connection acts as no agent: log in first");
	/* The wall clock may have been set: the connection's own one does not notice. */
	if (conn->expires_at && conn->expires_at <= coop_clock_wall_ms())
		return coop_err_set(err, COOP_PERMISSION_DENIED, "the token has expired");
	if (request->op->right == COOP_RIGHT_MANAGE && !conn->is_operator)
		return coop_err_set(err, COOP_PERMISSION_DENIED,
				    "%s is for the operator: the keeper's user, without a token",
				    request->op->name);
	return 0;
}

int coop_ops_owned(const struct coop_request *request, const struct coop_process *process,
		   struct coop_err *err)
{
	if (process->agent == request->conn->agent)
		return 0;
	return coop_err_set(
		err, COOP_NOT_OWNER,
		"the process belongs to an agent below this one, which alone may do that");
}

struct coop_process *coop_ops_process(struct coop_request *request)
{
	struct coop_err err;
	struct coop_process *process =
		coop_lookup(request->conn->agent, coop_arg_string(request->args, "id", ""), &err);
	bool owner = process && process->agent == request->conn->agent;

	if (process && !owner && request->op->right == COOP_RIGHT_USE) {
		(void)coop_ops_owned(request, process, &err);
		process = NULL;
	}
	if (!process)
		coop_request_fail(request, &err);
	else if (owner)
		coop_process_touch(process);
	return process;
}
