#include "keeper/ops/op_end.h"

#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/io/procfs.h"
#include "base/json/jsonw.h"
#include "base/list.h"
#include "base/text/signame.h"
#include "interface/choices.h"
#include "interface/err.h"
#include "interface/schema.h"
#include "keeper/core/keeper.h"
#include "keeper/core/life.h"
#include "keeper/link/connection.h"
#include "keeper/link/operation.h"
#include "keeper/link/request.h"
#include "keeper/output/stream.h"
#include "keeper/owner/agent.h"
#include "keeper/process/completions.h"
#include "keeper/process/eviction.h"
#include "keeper/process/lookup.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/process/registry.h"
#include "keeper/store/journal.h"
#include "keeper/store/record.h"
#include "keeper/tree/foreground.h"
#include "keeper/tree/kill.h"
#include "keeper/tree/leader.h"
#include "keeper/tree/orphans.h"
#include "keeper/tree/tree.h"

#define GRACE_MS 5000

enum { TARGET_GROUP, TARGET_PROCESS, TARGET_TREE, TARGET_FOREGROUND };

static int signal_number(const json_t *args)
{
	const json_t *value = coop_arg(args, "signal");

	return json_is_integer(value) ? (int)json_integer_value(value)
				      : coop_signame_parse(json_string_value(value));
}

static void signal_member(void *user, const struct coop_proc *proc)
{
	(void)coop_proc_signal(proc, *(int *)user); /* one that is gone meanwhile needs no signal */
}

/* The leader is our unreaped child, so neither its pid nor its group can be a stranger's. Returns
 * whether it went out. */
static bool send_signal(struct coop_process *process, int number, int target, pid_t *ret_group)
{
	*ret_group = 0;
	if (!coop_leader_there(process))
		return false;
	if (target == TARGET_FOREGROUND)
		return coop_foreground_signal(process, number, ret_group);
	if (target == TARGET_TREE) {
		if (coop_tree_look(process->keeper) < 0)
			return false;
		coop_tree_each(process->keeper, process, signal_member, &number);
		return true;
	}
	if (target == TARGET_GROUP)
		*ret_group = process->child.pid;
	return coop_leader_signal(process, number, target == TARGET_GROUP);
}

void coop_op_signal(struct coop_request *request)
{
	struct coop_process *process = coop_lookup_named(request);
	char name[COOP_SIGNAME_TEXT];
	struct coop_jsonw w;
	pid_t group;

	if (!process)
		return;
	int number = signal_number(request->args);
	int target = coop_arg_enum(request->args, "target", coop_choices_target, TARGET_GROUP);
	if (target == TARGET_FOREGROUND && !process->terms.pty) {
		struct coop_err err = {0};
		(void)coop_err_field(
			&err, COOP_INVALID_INPUT, "target",
			"the process has no terminal, so nothing is in its foreground");
		coop_request_fail(request, &err);
		return;
	}
	bool sent = send_signal(process, number, target, &group);
	/* A job that a shell has put into the foreground ends by it, not the shell. */
	if (sent && (target != TARGET_FOREGROUND || group == process->child.pid)) {
		process->blame.signals_sent |= 1ull << (number - 1);
		process->blame.signal_evidence = (struct coop_evidence){
			.request = "signal",
			.agent = process->agent->path,
			.at = coop_clock_wall_ms(),
		};
	}
	coop_signame_format(number, name);
	coop_request_result(request, &w);
	coop_jsonw_bool(&w, "sent", sent);
	coop_jsonw_int(&w, "signal", number);
	coop_jsonw_string(&w, "signal_name", name);
	if (sent && group)
		coop_jsonw_int(&w, "group", group);
	else
		coop_jsonw_null(&w, "group");
	coop_jsonw_string(&w, "state", coop_choices_state[coop_process_state(process)]);
	coop_request_end(request, &w);
}

static void answer_kill(struct coop_request *request, const struct coop_kill_receipt *receipt)
{
	struct coop_jsonw w;

	coop_request_result(request, &w);
	coop_receipt_write(receipt, &w);
	coop_jsonw_string(&w, "status", coop_record_status(request->process));
	coop_record_show(request->process, COOP_RECORD_FULL, request->conn, &w, "process");
	coop_request_end(request, &w);
}

/* Kills or stops, and answers through `answer`. */
static void end_process(struct coop_request *request, struct coop_process *process,
			uint64_t grace_ms,
			void (*answer)(struct coop_request *, const struct coop_kill_receipt *))
{
	struct coop_kill_order order = {
		.cause = COOP_CAUSE_KILLED_BY_REQUEST,
		.evidence = {.request = request->op->row->name, .agent = process->agent->path},
		.grace_ms = grace_ms,
	};

	if (!request->process)
		coop_process_hold(process, request);
	request->on_killed = answer;
	if (coop_kill_begin(process, &order) < 0) {
		coop_request_no_memory(request);
		return;
	}
	coop_kill_await(process, request);
}

/* A kill is a stop without grace, and is told apart by the operation's name in the evidence. */
void coop_op_kill(struct coop_request *request)
{
	struct coop_process *process = coop_lookup_named(request);

	if (process)
		end_process(request, process, 0, answer_kill);
}

void coop_op_stop(struct coop_request *request)
{
	struct coop_process *process = coop_lookup_named(request);

	if (process)
		end_process(request, process,
			    (uint64_t)coop_arg_int(request->args, "grace_ms", GRACE_MS),
			    answer_kill);
}

/* The record goes when nobody of it is left, never before: a process without a record would be
 * nobody's. */
static void answer_release(struct coop_request *request, const struct coop_kill_receipt *receipt)
{
	struct coop_process *process = request->process;
	/* What could not be killed stays owned, and listed. */
	bool release = !coop_process_removed(process) && receipt->success;
	struct coop_jsonw w;

	if (release) {
		coop_journal_released(process);
		coop_registry_remove(process);
	}
	coop_request_result(request, &w);
	coop_jsonw_bool(&w, "released", release);
	if (receipt->signalled_count) {
		coop_jsonw_begin(&w, "kill");
		coop_receipt_write(receipt, &w);
		coop_jsonw_end(&w);
	} else {
		coop_jsonw_null(&w, "kill");
	}
	coop_request_end(request, &w);
}

/* An id that is not known is no error: it is gone, which is what was asked for. */
void coop_op_release(struct coop_request *request)
{
	struct coop_err err;
	struct coop_process *process =
		coop_lookup(request->conn->agent, coop_arg_string(request->args, "id", ""), &err);
	struct coop_jsonw w;

	if (process && coop_lookup_owned(request, process, &err) < 0) {
		coop_request_fail(request, &err);
		return;
	}
	if (!process && err.code == COOP_NO_SUCH_PROCESS) {
		coop_request_result(request, &w);
		coop_jsonw_bool(&w, "released", false);
		coop_jsonw_null(&w, "kill");
		coop_request_end(request, &w);
		return;
	}
	if (process && coop_process_live(process) &&
	    coop_arg_enum(request->args, "if_running", coop_choices_if_running, 0) == 1)
		(void)coop_err_field(&err, COOP_INVALID_INPUT, "if_running",
				     "the process is running");
	else if (process)
		err.code = COOP_OK;
	if (err.code)
		coop_request_fail(request, &err);
	else
		end_process(request, process, 0, answer_release);
}

void coop_op_keep(struct coop_request *request)
{
	int overflow = coop_arg_enum(request->args, "overflow", coop_choices_keep_overflow, -1);
	struct coop_process *process = coop_lookup_named(request);
	struct coop_jsonw w;

	if (!process)
		return;
	if (process->terms.lease == COOP_LEASE_EPHEMERAL)
		process->terms.lease = COOP_LEASE_AWAITED;
	coop_list_remove(&process->origin.in_lease);
	if (!process->terms.completion && coop_arg_bool(request->args, "completion", false)) {
		process->terms.completion = true;
		/* It may have ended since its owner looked: that is news all the same. */
		if (coop_process_told(process))
			coop_completions_add(process);
	}
	for (int i = 0; i < process->output.count; i++) {
		struct coop_outlet *stream = &process->output.streams[i];
		if (overflow < 0 || stream->overflow == COOP_OVERFLOW_SPOOL)
			continue;
		stream->overflow = (enum coop_overflow)overflow;
		coop_stream_resume(stream); /* if it must wait still, the read says so */
	}
	coop_request_result(request, &w);
	coop_record_show(process, COOP_RECORD_FULL, request->conn, &w, "process");
	coop_request_end(request, &w);
}

void coop_op_gc(struct coop_request *request)
{
	struct coop_keeper *keeper = request->keeper;
	uint64_t released = 0;
	struct coop_jsonw w;

	COOP_LIST_EACH(coop_registry_all(keeper), link)
	{
		struct coop_process *process = COOP_LIST_ITEM(link, struct coop_process, in.all);
		/* What still owns living processes is not finished business, nor is what another
		 * connection has started and not heard of yet. */
		if (process->agent != request->conn->agent || !coop_process_told(process) ||
		    process->kill || coop_eviction_awaited(process, request->conn) ||
		    (!coop_process_receipt(process) && coop_orphans_may_be_left(keeper, process)))
			continue;
		coop_journal_released(process);
		coop_registry_remove(process);
		released++;
	}
	coop_request_result(request, &w);
	coop_jsonw_uint(&w, "released", released);
	coop_request_end(request, &w);
}

/* The request is answered by the keeper's own end, when all others are. */
void coop_op_shutdown(struct coop_request *request)
{
	coop_life_end(request->keeper, (uint64_t)coop_arg_int(request->args, "grace_ms", GRACE_MS),
		      request);
}
