#include "keeper/op_read.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/frame.h"
#include "base/mem.h"
#include "keeper/choices.h"
#include "keeper/connection.h"
#include "keeper/keeper.h"
#include "keeper/ops.h"
#include "keeper/process.h"
#include "keeper/reader.h"
#include "keeper/request.h"
#include "keeper/spool.h"

#define READ_DEFAULT 65536
#define PIECE (512u << 10) /* frames of a long read */

/* A read by bytes: where it began, where it is, what was lost. */
struct reading {
	struct coop_request *request; /* NULL: dropped while the disk was asked */
	struct coop_stream *stream;
	uint64_t asked, begin, position;
	size_t left;
	bool drain;
};

/* Where it is to begin: at its cursor, or where the reader is that it names. */
static uint64_t begin_at(const struct coop_request *request, struct coop_process *process,
			 const struct coop_stream *stream)
{
	const char *reader = coop_arg_string(request->args, "reader", NULL);

	if (!reader)
		return (uint64_t)coop_arg_int(request->args, "cursor", 0);
	return coop_reader_position(process, request->conn->agent, reader,
				    stream ? stream->number : 0);
}

static void answer_bytes(const struct reading *reading)
{
	struct coop_stream *stream = reading->stream;
	const struct coop_process *process = stream->process;
	struct coop_jsonw w;

	if (reading->drain)
		coop_stream_release(stream, reading->position);
	coop_request_result(reading->request, &w);
	coop_jsonw_string(&w, "stream", coop_stream_name(stream->number));
	coop_jsonw_uint(&w, "cursor", reading->begin);
	coop_jsonw_uint(&w, "next", reading->position);
	coop_jsonw_uint(&w, "bytes", reading->position - reading->begin);
	coop_jsonw_uint(&w, "bytes_dropped", reading->begin - reading->asked);
	coop_jsonw_uint(&w, "total", stream->ring.end);
	coop_jsonw_bool(&w, "eof", stream->eof);
	coop_jsonw_bool(&w, "drained_eof", stream->eof && reading->position >= stream->ring.end);
	coop_jsonw_string(&w, "state", coop_choices_state[process->state]);
	coop_request_end(reading->request, &w);
}

static bool send_piece(struct reading *reading, uint64_t position, const struct iovec *views,
		       int count)
{
	if (coop_request_data(reading->request, reading->stream->number, position,
			      COOP_FRAME_NO_CURSOR, views, count) < 0) {
		coop_request_no_memory(reading->request);
		return false;
	}
	for (int i = 0; i < count; i++)
		reading->position += views[i].iov_len;
	return true;
}

static void read_ring(struct reading *reading)
{
	struct iovec views[2];

	while (reading->left) {
		size_t size = reading->left < PIECE ? reading->left : PIECE;
		uint64_t before = reading->position;
		int count = coop_ring_view(&reading->stream->ring, before, size, views);
		if (!count)
			break;
		if (!send_piece(reading, before, views, count))
			return;
		reading->left -= (size_t)(reading->position - before);
	}
	answer_bytes(reading);
}

static void drop_reading(struct coop_request *request)
{
	struct reading *reading = request->state;

	reading->request = NULL;
}

static void on_fetched(void *user, const uint8_t *bytes, size_t size)
{
	struct reading *reading = user;
	struct iovec view = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};

	if (reading->request) {
		reading->request->on_drop = NULL;
		/* The file cannot be read: its bytes are lost, and the ring has what comes after them. */
		if (!size)
			reading->begin = reading->position = reading->stream->ring.start;
		if (!size || send_piece(reading, reading->position, &view, 1))
			answer_bytes(reading);
	}
	free(reading);
}

/* Bytes that are only on disk: one piece, as much as one frame takes. */
static void read_spool(const struct reading *begun)
{
	struct reading *reading = coop_mem_alloc(sizeof *reading);
	uint64_t there = begun->stream->spooled - begun->position;
	size_t size = begun->left < PIECE ? begun->left : PIECE;

	if (!reading) {
		coop_request_no_memory(begun->request);
		return;
	}
	*reading = *begun;
	if (size > there)
		size = (size_t)there;
	reading->request->state = reading;
	reading->request->on_drop = drop_reading;
	if (coop_spool_fetch(reading->stream, reading->position, size, on_fetched, reading) == 0)
		return;
	reading->request->on_drop = NULL;
	coop_request_no_memory(reading->request);
	free(reading);
}

static void read_bytes(struct coop_request *request, struct coop_stream *stream)
{
	const json_t *args = request->args;
	int64_t tail = coop_arg_int(args, "tail", -1);
	uint64_t end = stream->ring.end;
	struct reading reading = {
		.request = request,
		.stream = stream,
		.asked = begin_at(request, stream->process, stream),
		.left = (size_t)coop_arg_int(args, "max", READ_DEFAULT),
		.drain = coop_arg_bool(args, "drain", false),
	};

	if (tail >= 0) {
		uint64_t wanted = end > (uint64_t)tail ? end - (uint64_t)tail : 0;
		reading.asked = coop_stream_next_readable(stream, wanted);
	}
	if (reading.asked > end)
		reading.asked = end; /* past the end is at the end: nothing there yet */
	reading.begin = reading.position = coop_stream_next_readable(stream, reading.asked);
	if (reading.left && reading.position < stream->ring.start)
		read_spool(&reading);
	else
		read_ring(&reading);
}

/* A read by events. */
struct sweep {
	uint64_t begin, next;
	uint64_t bytes, bytes_dropped, events_dropped;
	bool notes, any; /* whether notes are wanted; whether anything has been sent */
};

static int send_event(struct coop_request *request, struct coop_process *process, uint64_t number)
{
	const struct coop_index_event *event = coop_index_get(&process->index, number);
	const struct coop_stream *stream = coop_process_stream(process, event->stream);
	struct iovec views[2];

	if (!stream) {
		const char *text = coop_note_text(process, event->offset);
		views[0] = (struct iovec){.iov_base = (void *)(uintptr_t)text,
					  .iov_len = strlen(text)};
		return coop_request_data(request, event->stream, 0, number, views, 1);
	}
	int count = coop_ring_view(&stream->ring, event->offset, event->size, views);

	return coop_request_data(request, event->stream, event->offset, number, views, count);
}

static bool lost(struct coop_process *process, const struct coop_index_event *event)
{
	return event->stream != COOP_NOTE_STREAM &&
	       event->offset < coop_process_stream(process, event->stream)->ring.start;
}

/* Combined reads are served from the rings: what fell out there is on disk, by stream and in output_path. */
static int sweep_events(struct coop_request *request, struct coop_process *process,
			struct sweep *sweep)
{
	const struct coop_index *index = &process->index;
	uint64_t most = (uint64_t)coop_arg_int(request->args, "max", READ_DEFAULT), left = most;

	if (sweep->next > index->next)
		sweep->next = index->next;
	if (sweep->next < index->first) {
		sweep->events_dropped = index->first - sweep->next;
		sweep->bytes_dropped = sweep->next ? 0 : index->forgotten_bytes;
		sweep->next = index->first;
	}
	for (sweep->begin = sweep->next; sweep->next < index->next; sweep->next++) {
		const struct coop_index_event *event = coop_index_get(index, sweep->next);
		if (lost(process, event)) {
			sweep->bytes_dropped += event->size;
			sweep->events_dropped++;
			continue;
		}
		if (event->stream == COOP_NOTE_STREAM && !sweep->notes)
			continue;
		if (!sweep->any)
			sweep->begin = sweep->next;
		/* At least one, or a reader with a small budget would never get on. */
		if ((event->size > left && (sweep->bytes || !left)) || !most)
			break;
		if (send_event(request, process, sweep->next) < 0)
			return -1;
		left -= event->size < left ? event->size : left;
		sweep->bytes += event->size;
		sweep->any = true;
	}
	if (!sweep->any)
		sweep->begin = sweep->next;
	return 0;
}

/* What is missing behind the first event that was sent. */
static void write_gaps(struct coop_jsonw *w, struct coop_process *process,
		       const struct sweep *sweep)
{
	coop_jsonw_array(w, "gaps");
	for (uint64_t n = sweep->begin; n < sweep->next;) {
		uint64_t from = n, bytes = 0;
		const struct coop_index_event *event;
		for (; n < sweep->next; n++) {
			event = coop_index_get(&process->index, n);
			if (!lost(process, event))
				break;
			bytes += event->size;
		}
		if (n == from) {
			n++;
			continue;
		}
		coop_jsonw_begin(w, NULL);
		coop_jsonw_uint(w, "from_cursor", from);
		coop_jsonw_uint(w, "to_cursor", n);
		coop_jsonw_uint(w, "bytes", bytes);
		coop_jsonw_end(w);
	}
	coop_jsonw_array_end(w);
}

static void write_times(struct coop_jsonw *w, struct coop_process *process,
			const struct sweep *sweep)
{
	coop_jsonw_array(w, "events");
	for (uint64_t n = sweep->begin; n < sweep->next; n++) {
		const struct coop_index_event *event = coop_index_get(&process->index, n);
		if (lost(process, event) || (event->stream == COOP_NOTE_STREAM && !sweep->notes))
			continue;
		coop_jsonw_begin(w, NULL);
		coop_jsonw_uint(w, "cursor", n);
		coop_jsonw_string(w, "stream", coop_stream_name(event->stream));
		coop_jsonw_uint(w, "offset", event->offset);
		coop_jsonw_uint(w, "bytes", event->size);
		coop_jsonw_time(w, "at", process->started_at + event->at_ms);
		coop_jsonw_end(w);
	}
	coop_jsonw_array_end(w);
}

static void read_combined(struct coop_request *request, struct coop_process *process)
{
	struct sweep sweep = {
		.next = begin_at(request, process, NULL),
		.notes = coop_arg_bool(request->args, "notes", false),
	};
	struct coop_jsonw w;
	uint64_t total = 0, before;
	bool eof = true;

	if (sweep_events(request, process, &sweep) < 0) {
		coop_request_no_memory(request);
		return;
	}
	for (int i = 0; i < process->stream_count; i++) {
		total += process->streams[i].ring.end;
		eof = eof && process->streams[i].eof;
	}
	coop_request_result(request, &w);
	coop_jsonw_string(&w, "stream", "combined");
	coop_jsonw_uint(&w, "cursor", sweep.begin);
	/* It is neither before the first event that is known nor past the last. */
	(void)coop_index_bytes_before(&process->index, sweep.begin, &before);
	coop_jsonw_uint(&w, "bytes_before", before);
	coop_jsonw_uint(&w, "first", process->index.first);
	coop_jsonw_uint(&w, "next", sweep.next);
	coop_jsonw_uint(&w, "bytes", sweep.bytes);
	coop_jsonw_uint(&w, "bytes_dropped", sweep.bytes_dropped);
	coop_jsonw_uint(&w, "events_dropped", sweep.events_dropped);
	write_gaps(&w, process, &sweep);
	coop_jsonw_uint(&w, "total", total);
	coop_jsonw_bool(&w, "eof", eof);
	coop_jsonw_bool(&w, "drained_eof", eof && sweep.next >= process->index.next);
	coop_jsonw_string(&w, "state", coop_choices_state[process->state]);
	if (coop_arg_bool(request->args, "times", false))
		write_times(&w, process, &sweep);
	coop_request_end(request, &w);
}

int coop_read_stream(struct coop_process *process, const json_t *args,
		     struct coop_stream **ret_stream, struct coop_err *err)
{
	const char *name = coop_arg_string(args, "stream", process->pty ? "pty" : "stdout");

	*ret_stream = NULL;
	if (!strcmp(name, "combined"))
		return 0;
	*ret_stream = coop_process_stream(process, coop_stream_number(name));
	if (*ret_stream)
		return 0;
	return coop_err_field(err, COOP_INVALID_INPUT, "stream", "the process has no %s: %s", name,
			      process->merged ? "its streams are merged, read stdout"
			      : process->pty  ? "it has a terminal, read pty"
					      : "read stdout or stderr");
}

int coop_read_reader_name(const char *name, struct coop_err *err)
{
	if (*name)
		return 0;
	return coop_err_field(err, COOP_INVALID_INPUT, "reader", "a reader needs a name");
}

/* What does not go together. 0, or the error filled. */
static int check_read(const json_t *args, bool combined, struct coop_err *err)
{
	const char *reader = coop_arg_string(args, "reader", NULL);

	if (coop_arg(args, "tail") && (combined || coop_arg(args, "cursor")))
		return coop_err_field(err, COOP_INVALID_INPUT, "tail",
				      "tail goes neither with cursor nor with stream combined");
	if (reader && (coop_arg(args, "tail") || coop_arg(args, "cursor")))
		return coop_err_field(err, COOP_INVALID_INPUT, "reader",
				      "reader goes neither with cursor nor with tail");
	if (combined && coop_arg_bool(args, "drain", false))
		return coop_err_field(err, COOP_INVALID_INPUT, "drain",
				      "drain does not go with stream combined");
	if (!combined && coop_arg_bool(args, "times", false))
		return coop_err_field(err, COOP_INVALID_INPUT, "times",
				      "times needs stream combined");
	if (!combined && coop_arg_bool(args, "notes", false))
		return coop_err_field(err, COOP_INVALID_INPUT, "notes",
				      "notes needs stream combined");
	return reader ? coop_read_reader_name(reader, err) : 0;
}

void coop_op_read(struct coop_request *request)
{
	const json_t *args = request->args;
	struct coop_process *process = coop_ops_process(request);
	struct coop_stream *stream = NULL;
	struct coop_err err = {0};

	if (!process)
		return;
	bool combined = !strcmp(coop_arg_string(args, "stream", ""), "combined");
	bool output = !strcmp(coop_arg_string(args, "stream", ""), "output");
	if (output && coop_read_check_output(process, args, &err) == 0)
		stream = process->stream_count == 1 ? &process->streams[0] : NULL;
	else if (output)
		; /* the error says why */
	else if (coop_arg_bool(args, "drain", false) && coop_ops_owned(request, process, &err) < 0)
		; /* to take bytes away is the owner's alone */
	else if (check_read(args, combined, &err) == 0)
		(void)coop_read_stream(process, args, &stream, &err);
	coop_request_hold(request, process);
	if (err.code)
		coop_request_fail(request, &err);
	else if (stream)
		read_bytes(request, stream);
	else if (output)
		coop_read_output(request, process);
	else
		read_combined(request, process);
}
