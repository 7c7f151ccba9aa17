#include "keeper/link/request.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "interface/frame.h"
#include "keeper/core/keeper.h"
#include "keeper/core/meters.h"
#include "keeper/link/connection.h"
#include "keeper/link/operation.h"

/* Who asked for what gives memory back gets his answer, and everybody the word that there is
 * none. */
static void begin_frame(struct coop_request *request, bool relieves, struct coop_jsonw *ret_writer)
{
	request->relief = coop_mem_relief(relieves);
	request->mark = coop_conn_frame_begin(request->conn, ret_writer);
	coop_jsonw_uint(ret_writer, "id", request->id);
}

static bool end_frame(struct coop_request *request, struct coop_jsonw *writer)
{
	bool sent = coop_conn_frame_end(request->conn, writer, request->mark);

	(void)coop_mem_relief(request->relief);
	return sent;
}

static void on_timer_closed(uv_handle_t *handle)
{
	free(handle);
}

void coop_request_timer_stop(struct coop_request *request)
{
	if (request->timer)
		uv_close((uv_handle_t *)request->timer, on_timer_closed);
	request->timer = NULL;
}

/* The list of a process that it waits in is left here too, so that an answer needs not know where a
 * request waits. */
static void free_request(struct coop_request *request)
{
	coop_list_remove(&request->in_process);
	coop_list_remove(&request->in_conn);
	request->conn->request_count--;
	/* The connection may have stopped reading because it had too many. */
	coop_conn_touch(request->conn);
	coop_request_timer_stop(request);
	if (request->process)
		request->release(request->process);
	json_decref(request->args);
	coop_buf_clear(&request->programs);
	free(request->data);
	free(request);
}

void coop_request_result(struct coop_request *request, struct coop_jsonw *ret_writer)
{
	begin_frame(request, (request->op->traits & COOP_OP_RELIEVES), ret_writer);
	coop_jsonw_begin(ret_writer, "result");
}

/* An answer that could not be written is replaced by the reason: every request is answered exactly
 * once. */
void coop_request_end(struct coop_request *request, struct coop_jsonw *writer)
{
	struct coop_err err;

	coop_jsonw_end(writer);
	if (end_frame(request, writer)) {
		free_request(request);
		return;
	}
	if (writer->failed) {
		(void)coop_err_set(
			&err, COOP_INTERNAL,
			"the keeper is out of memory: the answer is lost, what was asked "
			"for may be done");
		coop_err_detail_raw(&err, "errno", "\"ENOMEM\"");
	} else {
		(void)coop_err_set(&err, COOP_TOO_LARGE,
				   "the answer is larger than 8 MiB; ask for less at a time");
	}
	coop_request_fail(request, &err);
}

bool coop_request_is_full(const struct coop_request *request)
{
	const struct coop_conn *conn = request->conn;

	return coop_buf_size(&conn->out) - request->mark > coop_conn_answer_max(conn);
}

static void write_details(struct coop_jsonw *w, const struct coop_err *err,
			  const struct coop_buf *members)
{
	bool both = *err->details && coop_buf_size(members);

	coop_jsonw_raw(w, "details", "{");
	if (coop_buf_append(w->out, err->details, strlen(err->details)) < 0 ||
	    (both && coop_buf_append(w->out, ",", 1) < 0) ||
	    (coop_buf_size(members) &&
	     coop_buf_append(w->out, coop_buf_front(members), coop_buf_size(members) - 1) < 0) ||
	    coop_buf_append(w->out, "}", 1) < 0)
		w->failed = true;
}

void coop_request_fail(struct coop_request *request, const struct coop_err *err)
{
	static const struct coop_buf nothing;

	coop_request_fail_details(request, err, &nothing);
}

void coop_request_fail_details(struct coop_request *request, const struct coop_err *err,
			       const struct coop_buf *members)
{
	struct coop_jsonw w;

	begin_frame(request, true, &w);
	coop_jsonw_begin(&w, "error");
	coop_jsonw_string(&w, "code", coop_err_name(err->code));
	coop_jsonw_string(&w, "message", err->message);
	write_details(&w, err, members);
	coop_jsonw_end(&w);
	struct coop_conn *conn = request->conn;
	bool sent = end_frame(request, &w);
	free_request(request);
	/* A client must not wait for an answer that will never come. */
	if (!sent) {
		conn->closing = true;
		coop_conn_touch(conn);
	}
}

void coop_request_no_memory(struct coop_request *request)
{
	struct coop_err err;

	(void)coop_err_no_memory(&err);
	coop_request_fail(request, &err);
}

void coop_request_event(struct coop_request *request, const char *event,
			struct coop_jsonw *ret_writer)
{
	begin_frame(request, false, ret_writer);
	coop_jsonw_string(ret_writer, "event", event);
}

/* A follower that misses an event would go on with a wrong picture: its connection ends instead. */
void coop_request_event_end(struct coop_request *request, struct coop_jsonw *writer)
{
	if (end_frame(request, writer))
		return;
	request->conn->closing = true;
	coop_conn_touch(request->conn);
}

/* One copy, from where the bytes lie into the connection's output. */
int coop_request_data(struct coop_request *request, unsigned stream, uint64_t offset,
		      uint64_t cursor, const struct iovec *views, int count)
{
	struct coop_frame frame = {
		.kind = COOP_FRAME_DATA,
		.stream = (uint8_t)stream,
		.request = request->id,
		.offset = offset,
		.cursor = cursor,
	};

	for (int i = 0; i < count; i++)
		frame.size += views[i].iov_len;
	uint8_t *place = coop_buf_reserve(&request->conn->out, COOP_FRAME_DATA_HEADER + frame.size);
	if (!place)
		return -1;
	coop_frame_put_data(place, &frame);
	place += COOP_FRAME_DATA_HEADER;
	for (int i = 0; i < count; place += views[i++].iov_len)
		memcpy(place, views[i].iov_base, views[i].iov_len);
	coop_buf_commit(&request->conn->out, COOP_FRAME_DATA_HEADER + frame.size);
	coop_meters_of(request->keeper)->sent += frame.size;
	coop_conn_touch(request->conn);
	return 0;
}

static void on_timer(uv_timer_t *timer)
{
	struct coop_request *request = timer->data;

	request->on_timeout(request);
}

int coop_request_timer(struct coop_request *request, uint64_t ms)
{
	request->timer = coop_mem_zalloc(sizeof *request->timer);
	if (!request->timer)
		return -1;
	(void)uv_timer_init(coop_loop_of(request->keeper), request->timer);
	request->timer->data = request;
	uv_update_time(coop_loop_of(request->keeper));
	return uv_timer_start(request->timer, on_timer, ms, 0);
}

void coop_request_drop(struct coop_request *request)
{
	if (request->on_drop)
		request->on_drop(request);
	free_request(request);
}

void coop_request_forget_args(struct coop_request *request)
{
	json_decref(request->args);
	request->args = NULL;
	free(request->data);
	request->data = NULL;
}
