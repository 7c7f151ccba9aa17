#include "keeper/ops/op_stdin.h"

#include <sys/ioctl.h>
#include <termios.h>

#include "base/json/jsonw.h"
#include "interface/err.h"
#include "interface/schema.h"
#include "keeper/confine/ceiling.h"
#include "keeper/link/request.h"
#include "keeper/output/stdin.h"
#include "keeper/process/deadlines.h"
#include "keeper/process/lookup.h"
#include "keeper/process/process.h"

#define WRITE_TIMEOUT_MS 10000

static void fail_closed(struct coop_request *request)
{
	struct coop_err err;

	(void)coop_err_set(&err, COOP_CLOSED,
			   "the process takes no input: its stdin is closed or it has ended");
	coop_request_fail(request, &err);
}

/* It was open when the write began. */
static void fail_broken(struct coop_request *request, size_t written)
{
	struct coop_err err;

	(void)coop_err_set(&err, COOP_CLOSED, "the process does not read its input any more");
	coop_err_detail_int(&err, "bytes_written", (long long)written);
	coop_request_fail(request, &err);
}

static void answer_write(struct coop_request *request, bool timed_out, size_t written)
{
	struct coop_jsonw w;

	coop_request_result(request, &w);
	coop_jsonw_bool(&w, "success", !timed_out);
	coop_jsonw_bool(&w, "timed_out", timed_out);
	coop_jsonw_uint(&w, "bytes_written", written);
	coop_request_end(request, &w);
}

static void answer_close(struct coop_request *request, bool was_open)
{
	struct coop_jsonw w;

	coop_request_result(request, &w);
	coop_jsonw_bool(&w, "closed", true);
	coop_jsonw_bool(&w, "was_open", was_open);
	coop_request_end(request, &w);
}

static void answer(struct coop_request *request, bool ok, bool closes, size_t written)
{
	request->on_drop = NULL;
	if (closes)
		answer_close(request, true);
	else if (ok)
		answer_write(request, false, written);
	else
		fail_broken(request, written);
}

/* What is in the pipe is with the process, and the answer says how much that is; the rest is
 * taken back. */
static void on_timeout(struct coop_request *request)
{
	request->on_drop = NULL;
	answer_write(request, true, coop_stdin_abandon(&request->process->output, request));
}

static void on_drop(struct coop_request *request)
{
	(void)coop_stdin_abandon(&request->process->output, request);
}

/* Input to a process that has more than the door's ceiling allows would be a way around the
 * ceiling. */
void coop_op_write_stdin(struct coop_request *request)
{
	int64_t timeout = coop_arg_int(request->args, "timeout_ms", WRITE_TIMEOUT_MS);
	struct coop_process *process = coop_lookup_named(request);
	struct coop_err err;

	if (!process)
		return;
	if (coop_ceiling_check_input(request->conn, process, &err) < 0) {
		coop_request_fail(request, &err);
		return;
	}
	if (!process->output.input.open) {
		fail_closed(request);
		return;
	}
	coop_process_hold(process, request);
	request->on_timeout = on_timeout;
	request->on_drop = on_drop;
	coop_deadlines_touch(process);
	/* The timer is set first: the write may answer at once, and then the request is gone. */
	if ((timeout >= 0 && coop_request_timer(request, (uint64_t)timeout) < 0) ||
	    coop_stdin_write(&process->output, request->data, request->data_size, request, answer) <
		    0) {
		request->on_drop = NULL;
		coop_request_no_memory(request);
	}
}

void coop_op_close_stdin(struct coop_request *request)
{
	struct coop_process *process = coop_lookup_named(request);
	struct coop_err err;

	if (!process)
		return;
	/* The end of input is input: programs go on at it. */
	if (process->output.input.open &&
	    coop_ceiling_check_input(request->conn, process, &err) < 0) {
		coop_request_fail(request, &err);
		return;
	}
	if (!process->output.input.open) {
		answer_close(request, false);
		return;
	}
	coop_process_hold(process, request);
	request->on_drop = on_drop;
	if (coop_stdin_end(&process->output, request, answer) < 0) {
		request->on_drop = NULL;
		coop_request_no_memory(request);
	}
}

void coop_op_resize(struct coop_request *request)
{
	struct winsize size = {
		.ws_col = (unsigned short)coop_arg_int(request->args, "cols", 0),
		.ws_row = (unsigned short)coop_arg_int(request->args, "rows", 0),
	};
	struct coop_process *process = coop_lookup_named(request);
	struct coop_err err = {0};
	struct coop_jsonw w;

	if (!process)
		return;
	if (!process->terms.pty)
		(void)coop_err_field(&err, COOP_INVALID_INPUT, "id",
				     "the process has no terminal to resize");
	else if (process->output.input.fd < 0 ||
		 ioctl(process->output.input.fd, TIOCSWINSZ, &size) < 0)
		(void)coop_err_set(&err, COOP_CLOSED, "the terminal is closed");
	if (err.code) {
		coop_request_fail(request, &err);
		return;
	}
	process->terms.cols = size.ws_col;
	process->terms.rows = size.ws_row;
	coop_request_result(request, &w);
	coop_jsonw_int(&w, "cols", size.ws_col);
	coop_jsonw_int(&w, "rows", size.ws_row);
	coop_request_end(request, &w);
}
