#include "keeper/ops/op_wait.h"

#include <stdlib.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "base/json/jsonw.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text/signame.h"
#include "interface/frame.h"
#include "interface/schema.h"
#include "keeper/core/keeper.h"
#include "keeper/link/connection.h"
#include "keeper/link/request.h"
#include "keeper/output/ring.h"
#include "keeper/process/lookup.h"
#include "keeper/process/observer.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/store/record.h"

#define PIECE (COOP_CONN_ROOM / 2) /* frames of output */

/* How far the output is sent that comes before the answer. */
struct output {
	int stream;        /* of the process: the one that it is at */
	uint64_t position; /* in that */
	size_t left;       /* bytes that may still come of it */
	bool begun;        /* this stream */
};

/* The beginning of what one stream retains, in frames before the answer. Returns whether it is at
 * its end: if not there is no room for more. */
static bool send_stream(struct coop_request *request, struct output *output)
{
	const struct coop_outlet *stream = &request->process->output.streams[output->stream];
	struct iovec views[2];
	int count;

	if (!output->begun) {
		output->position = stream->ring.start;
		output->left = (size_t)coop_arg_int(request->args, "output_bytes", 0);
		output->begun = true;
	}
	/* While it waited for room the rest may have been overwritten. */
	while (output->left && output->position >= stream->ring.start) {
		size_t size = output->left < PIECE ? output->left : PIECE;
		if (!(count = coop_ring_view(&stream->ring, output->position, size, views)))
			break;
		if (!coop_conn_has_room(request->conn))
			return false;
		/* Without memory the answer itself fails, and says so. */
		if (coop_request_data(request, stream->number, output->position,
				      COOP_FRAME_NO_CURSOR, views, count) < 0)
			break;
		for (int i = 0; i < count; i++) {
			output->position += views[i].iov_len;
			output->left -= views[i].iov_len;
		}
	}
	return true;
}

/* One stream after the other, from where it stopped when there was no room. */
static bool send_output(struct coop_request *request)
{
	struct output *output = request->state;

	while (output && output->stream < request->process->output.count) {
		if (!send_stream(request, output))
			return false;
		output->stream++;
		output->begun = false;
	}
	return true;
}

/* It reads no more. */
static void leave(struct coop_request *request)
{
	if (request->on_drop)
		coop_process_reader_end(request->process);
	request->on_drop = NULL;
	free(request->state);
	request->state = NULL;
}

/* Called again when the client has read: so all that is written into the answer is looked at now,
 * and not when the end came. */
static void answer(struct coop_request *request)
{
	struct coop_process *process = request->process;
	int status = process->end.wait_status;
	bool ended = coop_process_told(process),
	     known = ended && process->end.cause != COOP_CAUSE_LOST;
	char name[COOP_SIGNAME_TEXT];
	struct coop_jsonw w;

	if (!send_output(request)) {
		coop_conn_go_on(request->conn, request);
		return;
	}
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
	coop_record_show(process, COOP_RECORD_FULL, request->conn, &w, "process");
	coop_request_end(request, &w);
}

/* `tidy` waits for placeholders as well, so that whoever looks at the workspace right after the
 * answer finds none. */
static bool is_over(const struct coop_request *request)
{
	const struct coop_process *process = request->process;

	return coop_process_told(process) &&
	       (!coop_arg_bool(request->args, "tidy", false) || coop_process_tidy(process));
}

void coop_op_wait(struct coop_request *request)
{
	int64_t timeout = coop_arg_int(request->args, "timeout_ms", -1);
	struct coop_process *process = coop_lookup_named(request);

	if (!process)
		return;
	coop_process_hold(process, request);
	request->on_timeout = coop_conn_answer_soon;
	request->on_room = answer;
	if (coop_arg_int(request->args, "output_bytes", 0)) {
		request->state = coop_mem_zalloc(sizeof(struct output));
		if (!request->state) {
			coop_request_no_memory(request);
			return;
		}
		coop_process_reader_begin(process);
		request->on_drop = leave;
	}
	if (is_over(request) || timeout == 0) {
		coop_conn_answer_soon(request);
	} else if (timeout > 0 && coop_request_timer(request, (uint64_t)timeout) < 0) {
		leave(request);
		coop_request_no_memory(request);
	} else {
		coop_list_add(&process->audience.waiters, &request->in_process);
	}
}

/* One that can be answered. An answer may take others with it, so the list is looked at anew for
 * each. */
static struct coop_request *next_over(const struct coop_process *process)
{
	for (struct coop_link *at = process->audience.waiters.next;
	     at != &process->audience.waiters; at = at->next) {
		struct coop_request *request = COOP_LIST_ITEM(at, struct coop_request, in_process);
		if (is_over(request))
			return request;
	}
	return NULL;
}

static void answer_all(struct coop_process *process)
{
	struct coop_request *request;

	while ((request = next_over(process)))
		coop_conn_answer_soon(request);
}

static void on_phase(struct coop_process *process, enum coop_phase phase)
{
	if (phase == COOP_PHASE_TOLD)
		answer_all(process);
}

const struct coop_observer coop_wait_observer = {.on_phase = on_phase, .on_tidy = answer_all};
