#include "keeper/ops/op_spawn.h"

#include <errno.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/list.h"
#include "interface/choices.h"
#include "interface/err.h"
#include "interface/schema.h"
#include "keeper/agents/op_agent.h"
#include "keeper/confine/confine.h"
#include "keeper/confine/draft.h"
#include "keeper/confine/private_files.h"
#include "keeper/core/keeper.h"
#include "keeper/core/meters.h"
#include "keeper/link/connection.h"
#include "keeper/link/connections.h"
#include "keeper/link/operation.h"
#include "keeper/link/request.h"
#include "keeper/ops/follow.h"
#include "keeper/ops/notices.h"
#include "keeper/ops/preflight.h"
#include "keeper/output/spool.h"
#include "keeper/owner/session.h"
#include "keeper/process/eviction.h"
#include "keeper/process/holder.h"
#include "keeper/process/note.h"
#include "keeper/process/process.h"
#include "keeper/process/quota.h"
#include "keeper/process/registry.h"
#include "keeper/process/report.h"
#include "keeper/start/spawn.h"
#include "keeper/start/verdict.h"
#include "keeper/store/record.h"
#include "keeper/store/spawn_audit.h"

static void write_started(struct coop_request *request, struct coop_process *process,
			  struct coop_jsonw *w)
{
	coop_record_show(process, COOP_RECORD_CACHED, request->conn, w, "process");
	if (coop_arg_bool(request->args, "hold", false))
		coop_holder_write(coop_holder_of(process, request->conn), w, "hold");
}

/* `follow`: the start is an event of it. One that cannot follow is told so; the command runs. */
static void reply_and_follow(struct coop_request *request, struct coop_process *process,
			     const json_t *args)
{
	struct coop_err err = {0};
	struct coop_jsonw w;

	coop_request_event(request, "started", &w);
	write_started(request, process, &w);
	coop_request_event_end(request, &w);
	if (coop_follow_begin(request, process, args, &err) < 0) {
		coop_err_detail(&err, "id", process->id);
		coop_request_fail(request, &err);
		return;
	}
	/* It may last for days: what only the start needed is not kept. */
	coop_request_forget_args(request);
}

/* Answers the request with the record of the started process. */
static void reply(struct coop_request *request, struct coop_process *process)
{
	const json_t *follow = coop_arg(request->args, "follow");
	struct coop_jsonw w;

	if (follow) {
		reply_and_follow(request, process, follow);
		return;
	}
	coop_request_result(request, &w);
	write_started(request, process, &w);
	coop_request_end(request, &w);
}

static int launch(struct coop_draft *draft)
{
	struct coop_request *request = draft->request;
	struct coop_process *process = draft->process;
	int wanted = coop_arg_enum(draft->args, "stdin", coop_choices_stdin,
				   draft->input.size ? COOP_STDIN_DATA : COOP_STDIN_NONE);
	static const uint8_t nothing[1];
	struct coop_spawn_command command = {
		.reply = reply,
		.argv = (char *const *)draft->argv,
		.envp = draft->env.variables,
		.cwd_fd = draft->cwd_fd,
		.program_fd = draft->program_fd,
		.stdin_pipe = wanted != COOP_STDIN_NONE,
		.stdin_bytes = wanted == COOP_STDIN_DATA
				       ? (draft->input.size ? draft->input.bytes : nothing)
				       : NULL,
		.stdin_size = draft->input.size,
		.keep_stdin_open = coop_arg_bool(draft->args, "keep_stdin_open", false),
	};
	int r = coop_private_files_write(process, draft->injections, draft->err);

	return r < 0 ? r : coop_spawn_start(process, &command, request, draft->err);
}

/* From here on it counts, and the audit knows of it. */
static int start(struct coop_draft *draft)
{
	struct coop_process *process = draft->process;
	uint64_t bytes = (uint64_t)process->output.count * process->output.streams[0].ring.limit;
	int r = coop_spawn_audit_allowed(draft->request, process, draft->err);

	if (r < 0)
		return r;
	if (coop_registry_add(process) < 0) {
		coop_spawn_audit_not_started(process);
		return coop_err_no_memory(draft->err);
	}
	coop_quota_make_room(process->agent, bytes);
	coop_quota_charge(process, bytes);
	if (draft->session)
		coop_process_join(process, draft->session);
	if (process->terms.lease == COOP_LEASE_EPHEMERAL)
		coop_list_add(&draft->request->conn->leases, &process->origin.in_lease);
	coop_eviction_claim(process, draft->request->conn);
	/* From its first byte on: the caller could only ask for it when a fast one has lost output
	 * already. */
	struct coop_holder *holder = NULL;
	if (coop_arg_bool(draft->args, "hold", false)) {
		holder = coop_holder_new(process, draft->request->conn, 0, draft->err);
		r = holder ? 0 : -ENOMEM;
	}
	if (r == 0)
		r = launch(draft);
	if (r < 0) {
		if (holder)
			coop_holder_end(holder);
		coop_spawn_audit_not_started(process);
		coop_registry_remove(process);
	}
	return r;
}

/* A caller that asked for it gets a finished record of a command that was refused. The error
 * stays. */
static void record_refusal(struct coop_draft *draft)
{
	struct coop_process *process = draft->process;
	struct coop_err failure = *draft->err;

	if (!process || !process->terms.record_failure || !process->labels.cwd ||
	    (!process->labels.label && coop_draft_labels(draft) < 0) ||
	    coop_registry_add(process) < 0) {
		*draft->err = failure;
		return;
	}
	coop_eviction_claim(process, draft->request->conn);
	coop_note_add(process, "%s", failure.message);
	coop_report_failed(process, 126);
	coop_err_detail(draft->err, "id", process->id);
}

/* The record of a refusal is made before the answer, which names it. */
static void refuse(struct coop_draft *draft, const struct coop_verdict *verdict)
{
	struct coop_request *request = draft->request;
	bool blocked = verdict->action != COOP_ACTION_ALLOW;
	struct coop_buf details = {0};

	coop_meters_of(request->keeper)->start_failures++;
	coop_spawn_audit_refused(request, draft->process, draft->err);
	if (draft->err->code == COOP_QUOTA || draft->err->code == COOP_REGISTRY_FULL)
		coop_notices_refused(draft->agent, draft->err);
	if (draft->recordable || blocked)
		record_refusal(draft);
	if (blocked)
		coop_verdict_details(draft, verdict, &details);
	coop_request_fail_details(request, draft->err, &details);
	coop_buf_clear(&details);
}

/* Nothing has come of it so far: it is begun anew when all has been looked up. */
static bool must_wait(struct coop_draft *draft)
{
	if (!draft->again)
		return false;
	coop_draft_clear(draft);
	coop_preflight_again(draft->request);
	return true;
}

/* Both streams of a process share a spool, so the first speaks for both. */
static bool spools(const struct coop_draft *draft)
{
	return draft->process->output.streams[0].overflow == COOP_OVERFLOW_SPOOL;
}

/* What a first look at the request has found, and the disk done since: NULL, before. */
struct prepared {
	struct coop_spool *spool;
	const struct coop_err *err; /* why there is none */
};

static void on_prepared(struct coop_request *request, struct coop_spool *spool,
			const struct coop_err *err);

/* 1: the files are made now, and the request is looked at again from its beginning when they are
 * there, since agents, quotas and policies may be others by then. */
static int prepare(struct coop_draft *draft, const struct prepared *prepared)
{
	if (!spools(draft))
		return 0;
	if (!prepared)
		return coop_spool_make(&draft->process->output, draft->request, on_prepared,
				       draft->err) < 0
			       ? -1
			       : 1;
	if (!prepared->spool)
		*draft->err = *prepared->err;
	return prepared->spool ? 0 : -1;
}

static void spawn(struct coop_request *request, struct prepared *prepared)
{
	struct coop_err err = {0};
	struct coop_draft draft = {.request = request,
				   .agent = request->conn->agent,
				   .args = request->args,
				   .err = &err};
	struct coop_verdict verdict; /* large: only what its count says is ever read */
	verdict.action = COOP_ACTION_ALLOW;
	int r = coop_draft_fill(&draft);
	if (r == 0)
		r = coop_verdict_reach(&draft, &verdict);
	if (must_wait(&draft))
		return;
	if (r == 0)
		r = coop_follow_check(coop_arg(request->args, "follow"), &err);
	if (r == 0)
		r = prepare(&draft, prepared);
	if (r == 0 && spools(&draft))
		draft.process->output.spool = COOP_TAKE_PTR(prepared->spool);
	if (r == 0)
		r = start(&draft);
	if (r < 0)
		refuse(&draft, &verdict);
	coop_draft_clear(&draft);
}

static void on_prepared(struct coop_request *request, struct coop_spool *spool,
			const struct coop_err *err)
{
	struct prepared prepared = {spool, err};

	spawn(request, &prepared);
	coop_spool_discard(prepared.spool);
}

void coop_op_spawn(struct coop_request *request)
{
	spawn(request, NULL);
}

/* Judges without starting anything. Arguments that are wrong are the error that a spawn would be
 * answered with. */
void coop_op_check(struct coop_request *request)
{
	struct coop_err err = {0};
	struct coop_draft draft = {.request = request, .args = request->args, .err = &err};
	struct coop_verdict verdict; /* large: only what its count says is ever read */
	struct coop_jsonw w;

	verdict.action = COOP_ACTION_ALLOW;
	verdict.count = 0;
	draft.cwd_fd = -1;
	draft.agent = coop_op_agent_named(request, &err);
	int r = draft.agent ? coop_draft_fill(&draft) : -1;
	if (r == 0)
		r = coop_verdict_reach(&draft, &verdict);
	if (must_wait(&draft))
		return;
	if (r < 0 && verdict.action == COOP_ACTION_ALLOW) {
		coop_request_fail(request, &err);
	} else {
		coop_request_result(request, &w);
		coop_verdict_envelope(&draft, &verdict, &w);
		coop_request_end(request, &w);
	}
	coop_draft_clear(&draft);
}

/* Refused before it was a draft: an attempt stands in the audit whatever becomes of it. */
void coop_op_spawn_invalid(struct coop_request *request, const struct coop_err *err)
{
	coop_spawn_audit_refused(request, NULL, err);
}

static struct coop_request *waiting_start(const struct coop_conn *conn)
{
	COOP_LIST_EACH(&conn->requests, link)
	{
		struct coop_request *request = COOP_LIST_ITEM(link, struct coop_request, in_conn);
		if (request->op->handle == coop_op_spawn && request->on_drop && !request->process)
			return request;
	}
	return NULL;
}

void coop_op_spawn_stopping(struct coop_keeper *keeper)
{
	struct coop_request *request;
	struct coop_err err = {0};

	(void)coop_err_set(&err, COOP_UNAVAILABLE, "the keeper is stopping");
	coop_err_detail(&err, "reason", "stopping");
	COOP_LIST_EACH(coop_connections_all(keeper), link)
	{
		const struct coop_conn *conn = COOP_LIST_ITEM(link, struct coop_conn, in_keeper);
		while ((request = waiting_start(conn))) {
			request->on_drop(request);
			coop_spawn_audit_refused(request, NULL, &err);
			coop_request_fail(request, &err);
		}
	}
}
