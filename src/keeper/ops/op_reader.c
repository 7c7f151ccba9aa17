#include "keeper/ops/op_reader.h"

#include "base/json/jsonw.h"
#include "interface/schema.h"
#include "keeper/link/connection.h"
#include "keeper/link/request.h"
#include "keeper/ops/op_read.h"
#include "keeper/output/stream.h"
#include "keeper/process/lookup.h"
#include "keeper/process/process.h"
#include "keeper/process/reader.h"

/* Past the end is at the end. */
static uint64_t clamp(const struct coop_process *process, const struct coop_outlet *stream,
		      uint64_t position)
{
	uint64_t end = stream ? stream->ring.end : process->output.index.next;

	return position < end ? position : end;
}

void coop_op_reader(struct coop_request *request)
{
	const struct coop_agent *agent = request->conn->agent;
	struct coop_process *process = coop_lookup_named(request);
	struct coop_outlet *stream;
	struct coop_err err = {0};
	struct coop_jsonw w;

	if (!process)
		return;
	const char *name = coop_arg_string(request->args, "reader", "");
	if (coop_read_reader_name(name, &err) < 0 ||
	    coop_read_stream(process, request->args, &stream, &err) < 0) {
		coop_request_fail(request, &err);
		return;
	}
	unsigned number = stream ? stream->number : 0;
	uint64_t previous = coop_reader_position(process, agent, name, number), now = previous;
	if (coop_arg(request->args, "cursor")) {
		now = clamp(process, stream, (uint64_t)coop_arg_int(request->args, "cursor", 0));
		if (coop_reader_move(process, agent, name, number, now) < 0) {
			coop_request_no_memory(request);
			return;
		}
	}
	coop_request_result(request, &w);
	coop_jsonw_string(&w, "reader", name);
	coop_jsonw_string(&w, "stream", stream ? coop_stream_name(stream->number) : "combined");
	coop_jsonw_uint(&w, "cursor", now);
	coop_jsonw_uint(&w, "previous", previous);
	coop_request_end(request, &w);
}
