#include "keeper/ops/op_read.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/json/jsonw.h"
#include "base/mem.h"
#include "interface/choices.h"
#include "interface/frame.h"
#include "interface/schema.h"
#include "keeper/link/connection.h"
#include "keeper/link/request.h"
#include "keeper/output/index.h"
#include "keeper/output/output.h"
#include "keeper/output/ring.h"
#include "keeper/output/spool.h"
#include "keeper/output/stream.h"
#include "keeper/process/eviction.h"
#include "keeper/process/lookup.h"
#include "keeper/process/note.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/process/reader.h"

#define READ_DEFAULT 65536
#define PIECE (COOP_CONN_ROOM / 2) /* frames of a long read */
#define DISK_PIECE (512u << 10)    /* bytes of a read that come from the disk */
#define TIMES_MAX (512u << 10)     /* text about the events of one answer */

/* A read by bytes: where it began, where it is, what was lost. The bytes stay where they are until
 * the client's socket takes them: a long read goes on as there is room, and ends early where they
 * are overwritten before. */
struct reading {
	struct coop_request *request; /* NULL: dropped while the disk was asked */
	struct coop_outlet *stream;
	uint64_t asked, begin, position;
	size_t left, fetching;
	bool begun, drain;
};

/* Where it is to begin: at its cursor, or where the reader is that it names. */
static uint64_t begin_at(const struct coop_request *request, struct coop_process *process,
			 const struct coop_outlet *stream)
{
	const char *reader = coop_arg_string(request->args, "reader", NULL);

	if (!reader)
		return (uint64_t)coop_arg_int(request->args, "cursor", 0);
	return coop_reader_position(process, request->conn->agent, reader,
				    stream ? stream->number : 0);
}

/* The request is about to be answered, or goes unanswered: its state is freed, unless the disk has
 * it. */
static void leave(struct coop_request *request)
{
	struct reading *reading = request->state;

	request->on_drop = NULL;
	request->state = NULL;
	coop_eviction_look(request->keeper);
	coop_process_reader_end(request->process);
	reading->request = NULL;
	if (reading->fetching)
		coop_conn_expect(request->conn, -(ssize_t)reading->fetching);
	else
		free(reading);
}

static void answer_bytes(struct reading *reading)
{
	struct coop_request *request = reading->request;
	struct coop_outlet *stream = reading->stream;
	const struct coop_process *process = coop_process_of(stream->output);
	struct coop_jsonw w;

	if (reading->drain)
		coop_stream_release(stream, reading->position);
	coop_request_result(request, &w);
	coop_jsonw_string(&w, "stream", coop_stream_name(stream->number));
	coop_jsonw_uint(&w, "cursor", reading->begin);
	coop_jsonw_uint(&w, "next", reading->position);
	coop_jsonw_uint(&w, "bytes", reading->position - reading->begin);
	coop_jsonw_uint(&w, "bytes_dropped", reading->begin - reading->asked);
	coop_jsonw_uint(&w, "total", stream->ring.end);
	coop_jsonw_bool(&w, "eof", stream->eof);
	coop_jsonw_bool(&w, "drained_eof", stream->eof && reading->position >= stream->ring.end);
	coop_jsonw_string(&w, "state", coop_choices_state[coop_process_state(process)]);
	leave(request);
	coop_request_end(request, &w);
}

static bool send_piece(struct reading *reading, uint64_t position, const struct iovec *views,
		       int count)
{
	struct coop_request *request = reading->request;

	if (coop_request_data(request, reading->stream->number, position, COOP_FRAME_NO_CURSOR,
			      views, count) < 0) {
		leave(request);
		coop_request_no_memory(request);
		return false;
	}
	for (int i = 0; i < count; i++)
		reading->position += views[i].iov_len;
	return true;
}

static void read_ring(struct reading *reading)
{
	struct coop_request *request = reading->request;
	const struct coop_ring *ring = &reading->stream->ring;
	struct iovec views[2];

	/* What was overwritten while the client did not read is told by its next read. */
	while (reading->left && reading->position >= ring->start) {
		size_t size = reading->left < PIECE ? reading->left : PIECE;
		uint64_t before = reading->position;
		int count = coop_ring_view(ring, before, size, views);
		if (!count)
			break;
		if (reading->begin < before && !coop_conn_has_room(request->conn)) {
			coop_conn_go_on(request->conn, request);
			return;
		}
		if (!send_piece(reading, before, views, count))
			return;
		reading->left -= (size_t)(reading->position - before);
	}
	answer_bytes(reading);
}

static void on_fetched(void *user, const uint8_t *bytes, size_t size)
{
	struct reading *reading = user;
	struct iovec view = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};

	if (!reading->request) {
		free(reading);
		return;
	}
	coop_conn_expect(reading->request->conn, -(ssize_t)reading->fetching);
	reading->fetching = 0;
	/* The file cannot be read: its bytes are lost, and the ring has what comes after them. */
	if (!size)
		reading->begin = reading->position = reading->stream->ring.start;
	if (!size || send_piece(reading, reading->position, &view, 1))
		answer_bytes(reading);
}

/* Bytes that are only on disk: one piece, as much as one frame takes. */
static void read_spool(struct reading *reading)
{
	struct coop_request *request = reading->request;
	uint64_t there = reading->stream->spooled - reading->position;
	size_t size = reading->left < DISK_PIECE ? reading->left : DISK_PIECE;

	if (size > there)
		size = (size_t)there;
	if (coop_spool_fetch(reading->stream, reading->position, size, on_fetched, reading) < 0) {
		leave(request);
		coop_request_no_memory(request);
		return;
	}
	reading->fetching = size;
	coop_conn_expect(request->conn, (ssize_t)size);
}

/* There is room: it begins, or goes on. */
static void serve_bytes(struct coop_request *request)
{
	struct reading *reading = request->state;
	struct coop_outlet *stream = reading->stream;
	int64_t tail = coop_arg_int(request->args, "tail", -1);
	uint64_t end = stream->ring.end;

	if (reading->begun) {
		read_ring(reading);
		return;
	}
	reading->begun = true;
	reading->asked = begin_at(request, coop_process_of(stream->output), stream);
	if (tail >= 0) {
		uint64_t wanted = end > (uint64_t)tail ? end - (uint64_t)tail : 0;
		reading->asked = coop_stream_next_readable(stream, wanted);
	}
	if (reading->asked > end)
		reading->asked = end; /* past the end is at the end: nothing there yet */
	reading->begin = reading->position = coop_stream_next_readable(stream, reading->asked);
	if (reading->left && reading->position < stream->ring.start)
		read_spool(reading);
	else
		read_ring(reading);
}

static void read_bytes(struct coop_request *request, struct coop_outlet *stream)
{
	struct reading *reading = coop_mem_zalloc(sizeof *reading);

	if (!reading) {
		coop_request_no_memory(request);
		return;
	}
	reading->request = request;
	reading->stream = stream;
	reading->left = (size_t)coop_arg_int(request->args, "max", READ_DEFAULT);
	reading->drain = coop_arg_bool(request->args, "drain", false);
	request->state = reading;
	request->on_drop = leave;
	request->on_room = serve_bytes;
	coop_process_reader_begin(request->process);
	coop_conn_when_room(request->conn, request);
}

/* A read by events. It goes on as there is room, like one by bytes; what it says of the events
 * that it has passed is written as it passes them, as they may be gone when it ends. */
struct sweep {
	uint64_t begin, next;
	uint64_t first;      /* event of the index, when it began */
	uint64_t before;     /* bytes of all events before `begin` */
	uint64_t most, left; /* bytes that were asked for, and that may still come */
	uint64_t bytes, bytes_dropped, events_dropped;
	uint64_t gap_from, gap_bytes; /* of the gap that it is in */
	bool in_gap;
	bool notes, timed; /* whether these are wanted */
	bool begun, any;   /* the second: something has been sent */
	struct coop_buf gaps_text, times_text;
	struct coop_jsonw gaps, times;
};

static int send_event(struct coop_request *request, struct coop_process *process, uint64_t number)
{
	const struct coop_index_event *event = coop_index_get(&process->output.index, number);
	const struct coop_outlet *stream = coop_output_stream(&process->output, event->stream);
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
	       event->offset < coop_output_stream(&process->output, event->stream)->ring.start;
}

static void end_gap(struct sweep *sweep)
{
	if (!sweep->in_gap)
		return;
	sweep->in_gap = false;
	coop_jsonw_begin(&sweep->gaps, NULL);
	coop_jsonw_uint(&sweep->gaps, "from_cursor", sweep->gap_from);
	coop_jsonw_uint(&sweep->gaps, "to_cursor", sweep->next);
	coop_jsonw_uint(&sweep->gaps, "bytes", sweep->gap_bytes);
	coop_jsonw_end(&sweep->gaps);
}

static void pass_lost(struct sweep *sweep, const struct coop_index_event *event)
{
	sweep->bytes_dropped += event->size;
	sweep->events_dropped++;
	/* Before the first that is sent it is no gap: the read begins behind it. */
	if (!sweep->any)
		return;
	if (!sweep->in_gap) {
		sweep->gap_from = sweep->next;
		sweep->gap_bytes = 0;
	}
	sweep->in_gap = true;
	sweep->gap_bytes += event->size;
}

static void write_time(struct sweep *sweep, const struct coop_process *process,
		       const struct coop_index_event *event)
{
	struct coop_jsonw *w = &sweep->times;

	coop_jsonw_begin(w, NULL);
	coop_jsonw_uint(w, "cursor", sweep->next);
	coop_jsonw_string(w, "stream", coop_stream_name(event->stream));
	coop_jsonw_uint(w, "offset", event->offset);
	coop_jsonw_uint(w, "bytes", event->size);
	coop_jsonw_time(w, "at", process->times.started_at + event->at_ms);
	coop_jsonw_end(w);
}

static int pass_event(struct coop_request *request, struct sweep *sweep,
		      const struct coop_index_event *event)
{
	struct coop_process *process = request->process;

	end_gap(sweep);
	if (!sweep->any) {
		sweep->begin = sweep->next;
		(void)coop_index_bytes_before(&process->output.index, sweep->begin, &sweep->before);
	}
	if (send_event(request, process, sweep->next) < 0)
		return -1;
	if (sweep->timed)
		write_time(sweep, process, event);
	sweep->left -= event->size < sweep->left ? event->size : sweep->left;
	sweep->bytes += event->size;
	sweep->any = true;
	return 0;
}

/* Combined reads are served from the rings: what fell out there is on disk, by stream and in
 * output_path. 1: it is at its end. 0: there is no room for more. Negative without memory. */
static int sweep_events(struct coop_request *request, struct sweep *sweep)
{
	struct coop_process *process = request->process;
	const struct coop_index *index = &process->output.index;

	/* Events that have left the index meanwhile are told of by the next read. */
	for (; sweep->next < index->next && sweep->next >= index->first; sweep->next++) {
		const struct coop_index_event *event = coop_index_get(index, sweep->next);
		if (lost(process, event)) {
			pass_lost(sweep, event);
			continue;
		}
		if (event->stream == COOP_NOTE_STREAM && !sweep->notes) {
			end_gap(sweep);
			continue;
		}
		/* At least one, or a reader with a small budget would never get on. */
		if ((event->size > sweep->left && (sweep->bytes || !sweep->left)) || !sweep->most ||
		    coop_buf_size(&sweep->times_text) > TIMES_MAX)
			break;
		if (sweep->any && !coop_conn_has_room(request->conn))
			return 0;
		if (pass_event(request, sweep, event) < 0)
			return -1;
	}
	end_gap(sweep);
	if (!sweep->any) {
		sweep->begin = sweep->next;
		/* It is neither before the first event that is known nor past the last. */
		(void)coop_index_bytes_before(index, sweep->begin, &sweep->before);
	}
	return 1;
}

static void leave_sweep(struct coop_request *request)
{
	struct sweep *sweep = request->state;

	request->on_drop = NULL;
	request->state = NULL;
	coop_eviction_look(request->keeper);
	coop_process_reader_end(request->process);
	coop_buf_clear(&sweep->gaps_text);
	coop_buf_clear(&sweep->times_text);
	free(sweep);
}

/* An array that was written apart; without memory the answer itself fails, and says so. */
static void write_apart(struct coop_jsonw *w, const char *name, struct coop_jsonw *apart)
{
	coop_jsonw_array_end(apart);
	if (apart->failed || coop_buf_append(apart->out, "", 1) < 0)
		w->failed = true;
	else
		coop_jsonw_raw(w, name, (const char *)coop_buf_front(apart->out));
}

static void answer_combined(struct coop_request *request, struct sweep *sweep)
{
	const struct coop_process *process = request->process;
	struct coop_jsonw w;
	uint64_t total = 0;
	bool eof = true;

	for (int i = 0; i < process->output.count; i++) {
		total += process->output.streams[i].ring.end;
		eof = eof && process->output.streams[i].eof;
	}
	coop_request_result(request, &w);
	coop_jsonw_string(&w, "stream", "combined");
	coop_jsonw_uint(&w, "cursor", sweep->begin);
	coop_jsonw_uint(&w, "bytes_before", sweep->before);
	coop_jsonw_uint(&w, "first", sweep->first);
	coop_jsonw_uint(&w, "next", sweep->next);
	coop_jsonw_uint(&w, "bytes", sweep->bytes);
	coop_jsonw_uint(&w, "bytes_dropped", sweep->bytes_dropped);
	coop_jsonw_uint(&w, "events_dropped", sweep->events_dropped);
	write_apart(&w, "gaps", &sweep->gaps);
	coop_jsonw_uint(&w, "total", total);
	coop_jsonw_bool(&w, "eof", eof);
	coop_jsonw_bool(&w, "drained_eof", eof && sweep->next >= process->output.index.next);
	coop_jsonw_string(&w, "state", coop_choices_state[coop_process_state(process)]);
	if (sweep->timed)
		write_apart(&w, "events", &sweep->times);
	leave_sweep(request);
	coop_request_end(request, &w);
}

static void begin_sweep(struct coop_request *request, struct sweep *sweep)
{
	const struct coop_index *index = &request->process->output.index;

	sweep->begun = true;
	sweep->first = index->first;
	sweep->next = begin_at(request, request->process, NULL);
	if (sweep->next > index->next)
		sweep->next = index->next;
	if (sweep->next >= index->first)
		return;
	sweep->events_dropped = index->first - sweep->next;
	sweep->bytes_dropped = sweep->next ? 0 : index->forgotten_bytes;
	sweep->next = index->first;
}

/* There is room: it begins, or goes on. */
static void serve_combined(struct coop_request *request)
{
	struct sweep *sweep = request->state;

	if (!sweep->begun)
		begin_sweep(request, sweep);
	int r = sweep_events(request, sweep);
	if (r > 0) {
		answer_combined(request, sweep);
	} else if (r == 0) {
		coop_conn_go_on(request->conn, request);
	} else {
		leave_sweep(request);
		coop_request_no_memory(request);
	}
}

static void read_combined(struct coop_request *request)
{
	struct sweep *sweep = coop_mem_zalloc(sizeof *sweep);

	if (!sweep) {
		coop_request_no_memory(request);
		return;
	}
	sweep->most = sweep->left = (uint64_t)coop_arg_int(request->args, "max", READ_DEFAULT);
	sweep->notes = coop_arg_bool(request->args, "notes", false);
	sweep->timed = coop_arg_bool(request->args, "times", false);
	sweep->gaps.out = &sweep->gaps_text;
	sweep->times.out = &sweep->times_text;
	coop_jsonw_array(&sweep->gaps, NULL);
	coop_jsonw_array(&sweep->times, NULL);
	request->state = sweep;
	request->on_drop = leave_sweep;
	request->on_room = serve_combined;
	coop_process_reader_begin(request->process);
	coop_conn_when_room(request->conn, request);
}

int coop_read_stream(struct coop_process *process, const json_t *args,
		     struct coop_outlet **ret_stream, struct coop_err *err)
{
	const char *name = coop_arg_string(args, "stream", process->terms.pty ? "pty" : "stdout");

	*ret_stream = NULL;
	if (!strcmp(name, "combined"))
		return 0;
	*ret_stream = coop_output_stream(&process->output, coop_stream_number(name));
	if (*ret_stream)
		return 0;
	return coop_err_field(err, COOP_INVALID_INPUT, "stream", "the process has no %s: %s", name,
			      process->terms.merged ? "its streams are merged, read stdout"
			      : process->terms.pty  ? "it has a terminal, read pty"
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
	struct coop_process *process = coop_lookup_named(request);
	struct coop_outlet *stream = NULL;
	struct coop_err err = {0};

	if (!process)
		return;
	bool combined = !strcmp(coop_arg_string(args, "stream", ""), "combined");
	bool output = !strcmp(coop_arg_string(args, "stream", ""), "output");
	if (output && coop_read_check_output(process, args, &err) == 0)
		stream = process->output.count == 1 ? &process->output.streams[0] : NULL;
	else if (output)
		; /* the error says why */
	else if (coop_arg_bool(args, "drain", false) &&
		 coop_lookup_owned(request, process, &err) < 0)
		; /* to take bytes away is the owner's alone */
	else if (check_read(args, combined, &err) == 0)
		(void)coop_read_stream(process, args, &stream, &err);
	coop_process_hold(process, request);
	if (err.code)
		coop_request_fail(request, &err);
	else if (stream)
		read_bytes(request, stream);
	else if (output)
		coop_read_output(request);
	else
		read_combined(request);
}
