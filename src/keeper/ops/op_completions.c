#include <string.h>

#include "base/json/jsonw.h"
#include "base/list.h"
#include "interface/err.h"
#include "interface/schema.h"
#include "keeper/link/connection.h"
#include "keeper/link/request.h"
#include "keeper/owner/agent.h"
#include "keeper/owner/queue.h"
#include "keeper/owner/session.h"
#include "keeper/process/completions.h"
#include "keeper/process/eviction.h"
#include "keeper/process/process.h"
#include "keeper/process/progress.h"
#include "keeper/store/record.h"

#define LIMIT 10
/* The queue that a request names, looked up each time: a session may end while somebody waits. NULL
 * with the error filled. */
static struct coop_completions *queue_of(const struct coop_request *request, struct coop_err *err)
{
	struct coop_agent *agent = request->conn->agent;
	const char *id = coop_arg_string(request->args, "session", NULL);

	if (!id || !strcmp(id, "default"))
		return &agent->completions;
	struct coop_session *session = coop_session_find(agent, id, "session", err);
	return session ? &session->completions : NULL;
}

/* How many of the queue an answer may hold, and what became of that. */
struct portion {
	int64_t processes, notes;
	bool more;
};

/* Written first and taken afterwards: so a full answer leaves the rest in the queue. */
static void write_processes(const struct coop_request *request, struct coop_completions *queue,
			    int64_t limit, struct portion *portion, struct coop_jsonw *w)
{
	coop_jsonw_array(w, "processes");
	COOP_LIST_EACH(&queue->ended, link)
	{
		if (portion->processes == limit || coop_request_is_full(request)) {
			portion->more = true;
			break;
		}
		coop_record_show(COOP_LIST_ITEM(link, struct coop_process, in.completions),
				 COOP_RECORD_FULL, request->conn, w, NULL);
		portion->processes++;
	}
	coop_jsonw_array_end(w);
}

static void write_notes(struct coop_completions *queue, int64_t limit, struct portion *portion,
			struct coop_jsonw *w)
{
	coop_jsonw_array(w, "notes");
	COOP_LIST_EACH(&queue->notes, link)
	{
		const struct coop_progress *progress =
			COOP_LIST_ITEM(link, struct coop_progress, in_notes);
		if (portion->notes == limit) {
			portion->more = true;
			break;
		}
		coop_jsonw_begin(w, NULL);
		coop_jsonw_string(w, "id", progress->process->id);
		coop_progress_write(progress, w);
		coop_jsonw_time(w, "at", progress->at);
		coop_jsonw_end(w);
		portion->notes++;
	}
	coop_jsonw_array_end(w);
}

static void take(struct coop_link *head, int64_t count)
{
	for (; count; count--)
		coop_list_remove(head->next);
}

/* Noted with the connection: should that go before its client has read, they come back. */
static void take_processes(struct coop_conn *conn, struct coop_completions *queue, int64_t count)
{
	for (; count; count--) {
		struct coop_link *first = queue->ended.next;
		coop_eviction_gives(conn,
				    COOP_LIST_ITEM(first, struct coop_process, in.completions));
		coop_list_remove(first);
	}
}

static void give(struct coop_request *request, struct coop_completions *queue)
{
	int64_t limit = coop_arg_int(request->args, "limit", LIMIT);
	struct portion portion = {0};
	struct coop_jsonw w;

	coop_request_result(request, &w);
	write_processes(request, queue, limit, &portion, &w);
	write_notes(queue, limit, &portion, &w);
	coop_jsonw_bool(&w, "more", portion.more);
	/* An answer that is lost for want of memory takes nothing with it. */
	if (coop_arg_bool(request->args, "take", true) && !w.failed) {
		take_processes(request->conn, queue, portion.processes);
		take(&queue->notes, portion.notes);
	}
	coop_request_end(request, &w);
}

/* Its timer tells: one that has run out is answered with what there is. */
static bool may_wait(const struct coop_request *request)
{
	return request->timer && uv_is_active((const uv_handle_t *)request->timer);
}

static void answer(struct coop_request *request)
{
	struct coop_err err;
	struct coop_completions *queue = queue_of(request, &err);

	if (!queue) {
		(void)coop_err_set(&err, COOP_CLOSED, "the session has ended");
		coop_request_fail(request, &err);
		return;
	}
	/* Another caller was quicker: it keeps its turn. */
	if (coop_completions_empty(queue) && may_wait(request))
		coop_list_push(&queue->waiters, &request->in_process);
	else
		give(request, queue);
}

void coop_op_completions(struct coop_request *request)
{
	int64_t timeout = coop_arg_int(request->args, "timeout_ms", 0);
	struct coop_err err;
	struct coop_completions *queue = queue_of(request, &err);

	if (!queue) {
		coop_request_fail(request, &err);
		return;
	}
	/* Before anything is looked at: the caps may drop a receipt that is in the queue. */
	coop_eviction_trim(request->keeper);
	request->on_room = answer;
	request->on_timeout = coop_conn_answer_soon;
	if (timeout && coop_request_timer(request, (uint64_t)timeout) < 0)
		coop_request_no_memory(request);
	else if (timeout && coop_completions_empty(queue))
		coop_list_add(&queue->waiters, &request->in_process);
	else
		coop_conn_when_room(request->conn, request);
}
