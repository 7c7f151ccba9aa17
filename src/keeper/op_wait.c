#include "keeper/op_wait.h"

#include <sys/uio.h>
#include <sys/wait.h>

#include "base/frame.h"
#include "base/signame.h"
#include "keeper/connection.h"
#include "keeper/keeper.h"
#include "keeper/ops.h"
#include "keeper/process.h"
#include "keeper/record.h"
#include "keeper/request.h"

/* The beginning of what is retained, in frames before the answer. */
static void send_output(struct coop_request *request, struct coop_process *process)
{
	size_t most = (size_t)coop_arg_int(request->args, "output_bytes", 0);
	struct iovec views[2];

	for (int i = 0; most && i < process->stream_count; i++) {
		const struct coop_stream *stream = &process->streams[i];
		int count = coop_ring_view(&stream->ring, stream->ring.start, most, views);
		/* Without memory the answer itself fails, and says so. */
		if (count)
			(void)coop_request_data(request, stream->number, stream->ring.start,
						COOP_FRAME_NO_CURSOR, views, count);
	}
}

/* It reads no more. */
static void leave(struct coop_request *request)
{
	if (request->on_drop)
		coop_process_reader_end(request->process);
	request->on_drop = NULL;
}

static void answer(struct coop_request *request)
{
	struct coop_process *process = request->process;
	int status = process->end.wait_status;
	bool ended = process->told, known = ended && process->end.cause != COOP_CAUSE_LOST;
	char name[COOP_SIGNAME_TEXT];
	struct coop_jsonw w;

	send_output(request, process);
	leave(request);
	coop_request_result(request, &w);
	coop_jsonw_bool(&w, "timed_out", !ended);
	coop_jsonw_bool(&w, "running", !ended);
	coop_jsonw_string(&w, "status", ended ? coop_record_status(process) : "running");
	if (known && WIFEXITED(status))
		coop_jsonw_int(&w, "exit_code", WEXITSTATUS(status));
	else
		coop_jsonw_null(&w, "exit_code");
	if (ended && WIFSIGNALED(status))
		coop_signame_format(WTERMSIG(status), name);
	coop_jsonw_string(&w, "signal", ended && WIFSIGNALED(status) ? name : NULL);
	coop_record_write(process, COOP_RECORD_FULL, request->conn, &w, "process");
	coop_request_end(request, &w);
}

/* Output may make it large: a client that does not read it must not make the keeper hold many. */
static void answer_soon(struct coop_request *request)
{
	coop_list_remove(&request->in_process);
	if (request->timer)
		(void)uv_timer_stop(request->timer);
	coop_conn_when_room(request->conn, request);
}

static bool is_over(const struct coop_request *request)
{
	const struct coop_process *process = request->process;

	return process->told &&
	       (!coop_arg_bool(request->args, "tidy", false) || coop_process_tidy(process));
}

void coop_op_wait(struct coop_request *request)
{
	int64_t timeout = coop_arg_int(request->args, "timeout_ms", -1);
	struct coop_process *process = coop_ops_process(request);

	if (!process)
		return;
	coop_request_hold(request, process);
	request->on_timeout = answer_soon;
	request->on_room = answer;
	if (coop_arg_int(request->args, "output_bytes", 0)) {
		coop_process_reader_begin(process);
		request->on_drop = leave;
	}
	if (is_over(request) || timeout == 0) {
		answer_soon(request);
	} else if (timeout > 0 && coop_request_timer(request, (uint64_t)timeout) < 0) {
		leave(request);
		coop_request_no_memory(request);
	} else {
		coop_list_add(&process->waiters, &request->in_process);
	}
}

/* One that can be answered. An answer may take others with it, so the list is looked at anew for each. */
static struct coop_request *next_over(const struct coop_process *process)
{
	for (struct coop_link *at = process->waiters.next; at != &process->waiters; at = at->next) {
		struct coop_request *request = COOP_LIST_ITEM(at, struct coop_request, in_process);
		if (is_over(request))
			return request;
	}
	return NULL;
}

void coop_wait_answer_all(struct coop_process *process)
{
	struct coop_request *request;

	while ((request = next_over(process)))
		answer_soon(request);
}
