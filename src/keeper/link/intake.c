#include "keeper/link/intake.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/jsonclamp.h"
#include "base/list.h"
#include "base/mem.h"
#include "interface/err.h"
#include "interface/frame.h"
#include "interface/schema.h"
#include "keeper/core/keeper.h"
#include "keeper/link/admission.h"
#include "keeper/link/connection.h"
#include "keeper/link/connections.h"
#include "keeper/link/operation.h"
#include "keeper/link/request.h"

#define FLAGS (JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES)

static const struct coop_intake_calls *calls_of(const struct coop_request *request)
{
	return coop_connections_of(request->keeper)->calls;
}

void coop_intake_again(struct coop_request *request)
{
	struct coop_err err = {0};

	if (calls_of(request)->allowed(request, &err) == 0 &&
	    coop_schema_check(request->op->row->args, request->args, &err) == 0) {
		bool before = coop_mem_relief((request->op->traits & COOP_OP_RELIEVES));
		if (!(request->op->traits & COOP_OP_LOOKS) || calls_of(request)->ready(request))
			request->op->handle(request);
		(void)coop_mem_relief(before);
		return;
	}
	if (request->op->refused)
		request->op->refused(request, &err);
	coop_request_fail(request, &err);
}

/* From a call that uses something on, a connection counts as used: a door names its ceiling before
 * that. */
static void dispatch(struct coop_request *request)
{
	if (request->conn->collecting)
		coop_conn_collect(request->conn, NULL);
	if (request->op->row->right >= COOP_RIGHT_USE)
		request->conn->used = true;
	coop_intake_again(request);
}

/* Whether bytes may be collected for it: 0, or the error filled. Nobody else would pay for them
 * while they come. What fits into a frame of anybody's is always taken: killing needs no more. */
static int may_collect(struct coop_request *request, struct coop_err *err)
{
	struct coop_agent *agent = request->conn->agent;
	int r = calls_of(request)->allowed(request, err);

	if (r < 0 || !agent || request->data_size <= COOP_ADMISSION_FRAME_MAX)
		return r;
	return calls_of(request)->may_hold(agent, request->data_size, err);
}

static bool is_open(const struct coop_conn *conn, uint64_t id)
{
	COOP_LIST_EACH(&conn->requests, link)
	{
		if (COOP_LIST_ITEM(link, struct coop_request, in_conn)->id == id)
			return true;
	}
	return false;
}

static void on_request(struct coop_conn *conn, json_t *frame)
{
	json_int_t id = json_integer_value(json_object_get(frame, "id"));
	const char *name = json_string_value(json_object_get(frame, "op"));
	const json_t *data = json_object_get(frame, "data");
	struct coop_err err = {0};

	if (id < 1 || id > COOP_JSON_INT_MAX || is_open(conn, (uint64_t)id) || !name ||
	    (data && (!json_is_integer(data) || json_integer_value(data) < 0))) {
		coop_conn_fatal(conn, "invalid_input",
				"a request needs an unused id from 1 to 2^53-1 and an op; data is "
				"a byte count");
		return;
	}
	bool before = coop_mem_relief(true);
	struct coop_request *request = coop_mem_zalloc(sizeof *request);
	(void)coop_mem_relief(before);
	if (!request) {
		coop_conn_fatal(conn, "internal", "the keeper is out of memory");
		return;
	}
	request->keeper = conn->keeper;
	request->conn = conn;
	request->id = (uint64_t)id;
	if (!json_is_null(json_object_get(frame, "args")))
		request->args = json_incref(json_object_get(frame, "args"));
	request->data_size = (size_t)json_integer_value(data);
	request->op = calls_of(request)->find(name);
	coop_list_add(&conn->requests, &request->in_conn);
	conn->request_count++;
	if (!request->op) {
		(void)coop_err_field(&err, COOP_INVALID_INPUT, "op",
				     "there is no operation named %.60s", name);
	} else if (request->data_size > request->op->row->data_max) {
		(void)coop_err_field(&err, COOP_TOO_LARGE, "data",
				     request->op->row->data_max ? "%s takes at most %zu bytes"
								: "%s takes no bytes",
				     request->op->row->name, request->op->row->data_max);
	} else if (request->data_size && may_collect(request, &err) < 0) {
		/* No memory for the bytes of somebody who may not send them, or so many more. */
		if (request->op->refused)
			request->op->refused(request, &err);
	} else if (request->data_size && !(request->data = coop_mem_alloc(request->data_size))) {
		(void)coop_err_no_memory(&err);
	}
	if (err.code) {
		conn->discard = request->data_size;
		conn->discard_id = request->id;
		coop_request_fail(request, &err);
	} else if (request->data_size) {
		coop_conn_collect(conn, request);
	} else {
		dispatch(request);
	}
}

/* Undone first, then answered: the answer frees the request. */
static void on_cancel(struct coop_conn *conn, uint64_t id)
{
	struct coop_err err;

	COOP_LIST_EACH(&conn->requests, link)
	{
		struct coop_request *request = COOP_LIST_ITEM(link, struct coop_request, in_conn);
		if (request->id != id)
			continue;
		if (request->on_drop)
			request->on_drop(request);
		(void)coop_err_set(&err, COOP_CANCELLED, "the request was cancelled");
		coop_request_fail(request, &err);
		return;
	}
}

static void on_json(struct coop_conn *conn, const struct coop_frame *frame)
{
	json_error_t fault;

	if (conn->collecting || conn->discard) {
		coop_conn_fatal(conn, "invalid_input",
				"a request came before the bytes of the one before it");
		return;
	}
	unsigned long failures = coop_mem_failures();
	bool before = coop_mem_relief(frame->size <= COOP_INTAKE_RELIEF_MAX);
	json_t *json = json_loadb((const char *)frame->bytes, frame->size, FLAGS, &fault);
	if (!json && json_error_code(&fault) == json_error_numeric_overflow) {
		/* The bytes are ours, in the input buffer. */
		coop_jsonclamp((char *)(uintptr_t)frame->bytes, frame->size);
		json = json_loadb((const char *)frame->bytes, frame->size, FLAGS, &fault);
	}
	(void)coop_mem_relief(before);
	if (coop_mem_failures() != failures) {
		/* jansson goes on after a failed allocation, with characters missing: such a
		 * request must not be carried out. */
		coop_conn_fatal(conn, "internal", "the keeper is out of memory");
	} else if (!json) {
		coop_conn_fatal(conn, "invalid_input", "a JSON frame is not valid JSON");
	} else if (!json_is_object(json)) {
		coop_conn_fatal(conn, "invalid_input", "a JSON frame is not an object");
	} else if (json_is_integer(json_object_get(json, "cancel"))) {
		on_cancel(conn, (uint64_t)json_integer_value(json_object_get(json, "cancel")));
	} else {
		on_request(conn, json);
	}
	json_decref(json);
}

/* Bytes come right behind their request, so there is one at most that collects; those of a refused
 * one are passed over by number. */
static void on_data(struct coop_conn *conn, const struct coop_frame *frame)
{
	struct coop_request *request = conn->collecting;

	if (conn->discard && frame->request == conn->discard_id && frame->size <= conn->discard) {
		conn->discard -= frame->size;
	} else if (!request || frame->request != request->id ||
		   frame->size > request->data_size - request->data_have) {
		coop_conn_fatal(conn, "invalid_input", "data came that no request announced");
	} else {
		memcpy(request->data + request->data_have, frame->bytes, frame->size);
		request->data_have += frame->size;
		if (request->data_have == request->data_size)
			dispatch(request);
	}
}

/* Before the login nothing needs a large frame, and nobody would answer for its memory. Seen from
 * the header, so that no more than that has come. */
static bool too_large_for_nobody(const struct coop_conn *conn)
{
	return !conn->agent &&
	       coop_frame_announced(coop_buf_front(&conn->in), coop_buf_size(&conn->in)) >
		       COOP_ADMISSION_FRAME_MAX;
}

/* Whether a large request would make its agent have more in memory than it may, were the rest of it
 * to come. Bytes behind a request were asked about with that. */
static bool too_large_for_agent(const struct coop_conn *conn)
{
	size_t announced =
		coop_frame_announced(coop_buf_front(&conn->in), coop_buf_size(&conn->in));
	size_t have = coop_buf_size(&conn->in);
	struct coop_err ignored;

	return conn->agent && !conn->collecting && !conn->discard &&
	       announced > COOP_ADMISSION_FRAME_MAX &&
	       coop_connections_of(conn->keeper)
			       ->calls->may_hold(conn->agent,
						 announced > have ? announced - have : 0,
						 &ignored) < 0;
}

/* Not from within itself: a handler that answers may flush, and that takes in what was held
 * back. */
void coop_intake(struct coop_conn *conn)
{
	struct coop_frame frame;
	const char *why;
	size_t used;

	if (conn->taking)
		return;
	conn->taking = true;
	while (coop_conn_wants_input(conn)) {
		if (too_large_for_nobody(conn)) {
			coop_conn_fatal(conn, "too_large",
					"a frame before the login is larger than 64 KiB");
			break;
		}
		int r = coop_frame_parse(coop_buf_front(&conn->in), coop_buf_size(&conn->in),
					 &frame, &used, &why);
		if (r < 0)
			coop_conn_fatal(conn, r == -EMSGSIZE ? "too_large" : "invalid_input", why);
		if (r == 0 && too_large_for_agent(conn))
			coop_conn_fatal(conn, "quota",
					"its agent has as many bytes in memory as it may: there is "
					"no room for a request of this size");
		if (r <= 0)
			break;
		if (frame.kind == COOP_FRAME_JSON)
			on_json(conn, &frame);
		else
			on_data(conn, &frame);
		coop_buf_consume(&conn->in, used);
	}
	conn->taking = false;
	conn->held = !coop_conn_wants_input(conn) && coop_buf_size(&conn->in);
}
