/* `read` with stream `output`: all output in order of arrival by its position, from the spool's
 * file of everything. */
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/json/jsonw.h"
#include "base/mem.h"
#include "interface/choices.h"
#include "interface/err.h"
#include "interface/frame.h"
#include "interface/schema.h"
#include "keeper/link/connection.h"
#include "keeper/link/request.h"
#include "keeper/ops/op_read.h"
#include "keeper/output/spool.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"

#define READ_DEFAULT 65536
#define PIECE (512u << 10) /* most bytes in one answer */

struct excerpt {
	struct coop_request *request; /* NULL: dropped while the disk was asked */
	struct coop_process *process;
	uint64_t asked, begin, next;
	size_t size; /* that the disk was asked for */
};

/* Bytes that came, and those of them that are in the file or on their way there. */
static uint64_t count(const struct coop_process *process, uint64_t *ret_filed)
{
	uint64_t total = 0;

	*ret_filed = 0;
	for (int i = 0; i < process->output.count; i++) {
		total += process->output.streams[i].ring.end;
		if (process->output.spool)
			*ret_filed += process->output.streams[i].fed;
	}
	return total;
}

static void answer(const struct excerpt *excerpt)
{
	const struct coop_process *process = excerpt->process;
	uint64_t filed, total = count(process, &filed);
	struct coop_jsonw w;
	bool eof = true;

	for (int i = 0; i < process->output.count; i++)
		eof = eof && process->output.streams[i].eof;
	coop_request_result(excerpt->request, &w);
	coop_jsonw_string(&w, "stream", "output");
	coop_jsonw_uint(&w, "cursor", excerpt->begin);
	coop_jsonw_uint(&w, "next", excerpt->next);
	coop_jsonw_uint(&w, "bytes", excerpt->next - excerpt->begin);
	coop_jsonw_uint(&w, "bytes_dropped", excerpt->begin - excerpt->asked);
	coop_jsonw_uint(&w, "total", total);
	coop_jsonw_bool(&w, "eof", eof);
	coop_jsonw_bool(&w, "drained_eof", eof && excerpt->next >= total);
	coop_jsonw_string(&w, "state", coop_choices_state[coop_process_state(process)]);
	coop_request_end(excerpt->request, &w);
}

static void on_drop(struct coop_request *request)
{
	struct excerpt *excerpt = request->state;

	coop_conn_expect(request->conn, -(ssize_t)excerpt->size);
	excerpt->request = NULL;
}

static void on_fetched(void *user, const uint8_t *bytes, size_t size)
{
	struct excerpt *excerpt = user;
	struct coop_request *request = excerpt->request;
	struct iovec view = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};
	uint64_t filed;

	if (request) {
		request->on_drop = NULL;
		coop_conn_expect(request->conn, -(ssize_t)excerpt->size);
		excerpt->next += size;
		/* A file that cannot be read any more: all of it is lost. */
		if (!size)
			excerpt->begin = excerpt->next = count(excerpt->process, &filed);
		if (size && coop_request_data(request, excerpt->process->output.streams[0].number,
					      excerpt->begin, COOP_FRAME_NO_CURSOR, &view, 1) < 0)
			coop_request_no_memory(request);
		else
			answer(excerpt);
	}
	free(excerpt);
}

static void fetch(const struct excerpt *begun, size_t size)
{
	struct coop_request *request = begun->request;
	struct excerpt *excerpt = coop_mem_alloc(sizeof *excerpt);

	if (excerpt) {
		*excerpt = *begun;
		excerpt->size = size;
		request->state = excerpt;
		request->on_drop = on_drop;
		if (coop_spool_fetch_all(&begun->process->output, begun->begin, size, on_fetched,
					 excerpt) == 0) {
			coop_conn_expect(request->conn, (ssize_t)size);
			return;
		}
		request->on_drop = NULL;
	}
	coop_request_no_memory(request);
	free(excerpt);
}

static void serve(struct coop_request *request)
{
	struct coop_process *process = request->process;
	uint64_t max = (uint64_t)coop_arg_int(request->args, "max", READ_DEFAULT);
	uint64_t filed, total = count(process, &filed);
	uint64_t asked = (uint64_t)coop_arg_int(request->args, "cursor", 0);
	struct excerpt excerpt = {.request = request, .process = process};

	excerpt.asked = asked < total ? asked : total;
	/* What a spool that has stopped did not take counts as lost, at its end. */
	excerpt.begin = excerpt.asked < filed ? excerpt.asked : total;
	excerpt.next = excerpt.begin;
	if (max > PIECE)
		max = PIECE;
	if (excerpt.begin < filed && max > filed - excerpt.begin)
		max = filed - excerpt.begin;
	if (excerpt.begin < filed && max)
		fetch(&excerpt, (size_t)max);
	else
		answer(&excerpt);
}

void coop_read_output(struct coop_request *request)
{
	request->on_room = serve;
	coop_conn_when_room(request->conn, request);
}

int coop_read_check_output(const struct coop_process *process, const json_t *args,
			   struct coop_err *err)
{
	static const char *const others[] = {"tail", "drain", "times", "reader", "notes", NULL};

	for (int i = 0; others[i]; i++) {
		const json_t *value = coop_arg(args, others[i]);
		if (value && !json_is_false(value))
			return coop_err_field(err, COOP_INVALID_INPUT, others[i],
					      "%s does not go with stream output", others[i]);
	}
	if (process->output.streams[0].overflow == COOP_OVERFLOW_SPOOL)
		return 0;
	return coop_err_field(err, COOP_INVALID_INPUT, "stream",
			      "stream output needs a process that was started with overflow spool; "
			      "read combined");
}
