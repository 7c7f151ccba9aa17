#include "keeper/ops/follow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/buf.h"
#include "base/json/jsonw.h"
#include "base/mem.h"
#include "interface/err.h"
#include "interface/frame.h"
#include "interface/schema.h"
#include "keeper/core/keeper.h"
#include "keeper/core/meters.h"
#include "keeper/link/connection.h"
#include "keeper/link/request.h"
#include "keeper/link/watch.h"
#include "keeper/output/index.h"
#include "keeper/output/output.h"
#include "keeper/output/ring.h"
#include "keeper/output/spool.h"
#include "keeper/output/stream.h"
#include "keeper/process/deadlines.h"
#include "keeper/process/eviction.h"
#include "keeper/process/lookup.h"
#include "keeper/process/note.h"
#include "keeper/process/observer.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/store/record.h"

#define PIECE (COOP_CONN_ROOM / 2) /* largest frame of a follower */
/* The same from the disk, where each costs a turn of the helper thread. */
#define DISK_PIECE COOP_CONN_ROOM

/* Bytes on their way from the disk. Outlives a follow that is dropped meanwhile. */
struct coop_follow_fetch {
	struct coop_follow *follow; /* NULL: nobody waits any more */
	unsigned stream;
	uint64_t position, cursor;
	size_t size;
};

/* Touched, not served: one flush at the end of the turn carries what all reads of the turn have
 * brought. */
static void wake(struct coop_process *process)
{
	COOP_LIST_EACH(&process->audience.followers, link)
	{
		coop_conn_touch(
			COOP_LIST_ITEM(link, struct coop_follow, in_process)->request->conn);
	}
}

/* A fetch that is on its way stays with the helper thread and finds nobody when it comes back. */
static void detach(struct coop_request *request)
{
	struct coop_follow *follow = request->state;
	struct coop_process *process = request->process;

	coop_list_remove(&follow->in_process);
	coop_list_remove(&follow->in_conn);
	if (follow->fetch) {
		coop_conn_expect(request->conn, -(ssize_t)follow->fetch->size);
		follow->fetch->follow = NULL;
	}
	coop_meters_of(request->keeper)->followers--;
	coop_eviction_look(request->keeper);
	coop_deadlines_touch(process);
	coop_holder_end(&follow->holder);
	free(follow);
	coop_process_reader_end(process);
}

static void finish(struct coop_follow *follow, const char *reason)
{
	struct coop_request *request = follow->request;
	const struct coop_process *process = request->process;
	struct coop_jsonw w;

	detach(request);
	request->on_drop = NULL;
	coop_request_result(request, &w);
	coop_jsonw_string(&w, "reason", reason);
	coop_jsonw_uint(&w, "cursor", process->output.exit_cursor);
	coop_record_show(request->process, COOP_RECORD_FULL, request->conn, &w, "process");
	coop_request_end(request, &w);
}

static void say_gap(struct coop_follow *follow, unsigned stream, uint64_t from, uint64_t to)
{
	struct coop_jsonw w;

	coop_meters_of(follow->request->keeper)->gaps++;
	coop_request_event(follow->request, "gap", &w);
	coop_jsonw_string(&w, "stream", coop_stream_name(stream));
	coop_jsonw_uint(&w, "from", from);
	coop_jsonw_uint(&w, "to", to);
	coop_request_event_end(follow->request, &w);
}

static void write_known(struct coop_jsonw *w, const char *name, bool known, uint64_t number)
{
	if (known)
		coop_jsonw_uint(w, name, number);
	else
		coop_jsonw_null(w, name);
}

static void say_event_gap(struct coop_follow *follow, uint64_t to, bool bytes_known, uint64_t bytes)
{
	const struct coop_index *index = &follow->request->process->output.index;
	struct coop_jsonw w;
	uint64_t before;
	bool known = coop_index_bytes_before(index, to, &before);

	/* What was fetched from the disk may have left the index meanwhile. */
	if (!known && follow->bytes_known && bytes_known) {
		before = follow->bytes_before + bytes;
		known = true;
	}
	coop_meters_of(follow->request->keeper)->gaps++;
	coop_request_event(follow->request, "gap", &w);
	coop_jsonw_uint(&w, "from_cursor", follow->cursor);
	coop_jsonw_uint(&w, "to_cursor", to);
	write_known(&w, "bytes", bytes_known, bytes);
	write_known(&w, "bytes_before", known, before);
	coop_request_event_end(follow->request, &w);
	follow->cursor = to;
}

/* The cursor moves with events alone: in byte mode frames carry none. */
static void advance(struct coop_follow *follow, unsigned stream, uint64_t cursor, size_t size)
{
	follow->position[stream] += size;
	if (cursor == COOP_FRAME_NO_CURSOR)
		return;
	follow->cursor = cursor + 1;
	follow->bytes_before += size;
}

static void on_fetched(void *user, const uint8_t *bytes, size_t size)
{
	struct coop_follow_fetch *fetch = user;
	struct coop_follow *follow = fetch->follow;
	struct iovec view = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size};

	if (follow) {
		follow->fetch = NULL;
		coop_conn_expect(follow->request->conn, -(ssize_t)fetch->size);
		if (size == fetch->size &&
		    coop_request_data(follow->request, fetch->stream, fetch->position,
				      fetch->cursor, &view, 1) == 0) {
			advance(follow, fetch->stream, fetch->cursor, size);
		} else if (fetch->cursor != COOP_FRAME_NO_CURSOR) {
			say_event_gap(follow, fetch->cursor + 1, true, fetch->size);
			follow->bytes_before += fetch->size;
		} else {
			say_gap(follow, fetch->stream, fetch->position,
				fetch->position + fetch->size);
			advance(follow, fetch->stream, fetch->cursor, fetch->size);
		}
		coop_conn_touch(follow->request->conn);
	}
	free(fetch);
}

/* Asks for bytes that are only on disk. Without memory the follower tries again soon: nothing else
 * wakes it where the process has ended. */
static void fetch_bytes(struct coop_follow *follow, struct coop_outlet *stream, uint64_t position,
			uint64_t cursor, size_t size)
{
	struct coop_follow_fetch *fetch = coop_mem_zalloc(sizeof *fetch);

	if (fetch)
		*fetch = (struct coop_follow_fetch){.follow = follow,
						    .stream = stream->number,
						    .position = position,
						    .cursor = cursor,
						    .size = size};
	if (!fetch || coop_spool_fetch(stream, position, size, on_fetched, fetch) < 0) {
		free(fetch);
		coop_deadlines_retry(coop_process_of(stream->output));
		return;
	}
	follow->fetch = fetch;
	coop_conn_expect(follow->request->conn, (ssize_t)size);
}

/* Sends one piece of one stream. Returns whether anything went out. */
static bool fill_stream(struct coop_follow *follow, struct coop_outlet *stream)
{
	uint64_t *position = &follow->position[stream->number];
	uint64_t readable = coop_stream_next_readable(stream, *position);
	struct iovec views[2];

	if (*position > stream->ring.end)
		return false;
	if (readable > *position) {
		say_gap(follow, stream->number, *position, readable);
		*position = readable;
	}
	if (readable < stream->ring.start) {
		uint64_t left = stream->spooled - readable;
		fetch_bytes(follow, stream, readable, COOP_FRAME_NO_CURSOR,
			    left < DISK_PIECE ? (size_t)left : DISK_PIECE);
		return false;
	}
	int count = coop_ring_view(&stream->ring, readable, PIECE, views);
	if (!count || coop_request_data(follow->request, stream->number, readable,
					COOP_FRAME_NO_CURSOR, views, count) < 0)
		return false;
	*position += views[0].iov_len + (count > 1 ? views[1].iov_len : 0);
	coop_holder_take(&follow->holder, stream->number, *position);
	if (follow->drain)
		coop_stream_release(stream, *position);
	return true;
}

/* Streams take turns, a piece each, so that one that prints much does not keep the other
 * waiting. */
static bool fill_bytes(struct coop_follow *follow, uint64_t budget)
{
	struct coop_process *process = follow->request->process;
	uint64_t began = coop_buf_size(&follow->request->conn->out);
	bool any = false, went = true;

	while (went && !follow->fetch &&
	       coop_buf_size(&follow->request->conn->out) - began < budget) {
		went = false;
		for (int i = 0; i < process->output.count && !follow->fetch; i++) {
			if (follow->wanted[process->output.streams[i].number])
				went = fill_stream(follow, &process->output.streams[i]) || went;
		}
		any = any || went;
	}
	return any;
}

static bool retained(const struct coop_outlet *stream, const struct coop_index_event *event)
{
	uint64_t readable = coop_stream_next_readable(stream, event->offset);

	/* A piece may begin on disk and end in the ring: then it is whole on disk too, or it is
	 * lost. */
	if (readable < stream->ring.start)
		return event->offset + event->size <= stream->spooled;
	return readable == event->offset;
}

/* Goes over events that were asked for and whose bytes are lost, and tells of them. Returns whether
 * it told. */
static bool skip_lost(struct coop_follow *follow, struct coop_process *process)
{
	const struct coop_index *index = &process->output.index;
	uint64_t cursor = follow->cursor, bytes = 0;

	if (cursor < index->first) {
		bool known = follow->bytes_known;
		say_event_gap(follow, index->first, known,
			      index->forgotten_bytes - follow->bytes_before);
		follow->bytes_before = index->forgotten_bytes;
		follow->bytes_known = true;
		return true;
	}
	for (; cursor < index->next; cursor++) {
		const struct coop_index_event *event = coop_index_get(index, cursor);
		if (!follow->wanted[event->stream] || event->stream == COOP_NOTE_STREAM ||
		    retained(coop_output_stream(&process->output, event->stream), event))
			break;
		bytes += event->size;
	}
	if (cursor == follow->cursor)
		return false;
	say_event_gap(follow, cursor, true, bytes);
	follow->bytes_before += bytes;
	return true;
}

/* A note has no place in any stream: its offset is 0, and it counts for no bytes. */
static bool fill_note(struct coop_follow *follow, const struct coop_process *process,
		      const struct coop_index_event *event)
{
	const char *text = coop_note_text(process, event->offset);
	struct iovec view = {.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)};

	if (coop_request_data(follow->request, event->stream, 0, follow->cursor, &view, 1) < 0)
		return false;
	advance(follow, event->stream, follow->cursor, 0);
	return true;
}

static bool fill_event(struct coop_follow *follow, struct coop_process *process)
{
	const struct coop_index *index = &process->output.index;
	struct iovec views[2];

	if (skip_lost(follow, process))
		return true;
	if (follow->cursor >= index->next)
		return false;
	const struct coop_index_event *event = coop_index_get(index, follow->cursor);
	struct coop_outlet *stream = coop_output_stream(&process->output, event->stream);
	if (!follow->wanted[event->stream]) {
		advance(follow, event->stream, follow->cursor, event->size);
		return true;
	}
	if (!stream)
		return fill_note(follow, process, event);
	if (event->offset < stream->ring.start) {
		fetch_bytes(follow, stream, event->offset, follow->cursor, event->size);
		return false;
	}
	int count = coop_ring_view(&stream->ring, event->offset, event->size, views);
	if (coop_request_data(follow->request, event->stream, event->offset, follow->cursor, views,
			      count) < 0)
		return false;
	advance(follow, event->stream, follow->cursor, event->size);
	return true;
}

static bool fill_events(struct coop_follow *follow, uint64_t budget)
{
	uint64_t began = coop_buf_size(&follow->request->conn->out);
	bool any = false;

	while (!follow->fetch && coop_buf_size(&follow->request->conn->out) - began < budget) {
		if (!fill_event(follow, follow->request->process))
			break;
		any = true;
	}
	coop_holder_pass(&follow->holder, follow->cursor);
	return any;
}

/* Whether the process waits for room that this follower cannot make: then the full ring is all it
 * can get. */
static bool stuck(const struct coop_follow *follow, const struct coop_outlet *stream)
{
	return stream->paused && stream->overflow == COOP_OVERFLOW_BACKPRESSURE &&
	       (!follow->drain || follow->position[stream->number] > stream->ring.end);
}

static bool stream_at_end(const struct coop_follow *follow, const struct coop_outlet *stream)
{
	uint64_t position = follow->position[stream->number];

	if (!follow->until_eof)
		return position >= (stuck(follow, stream) ? stream->ring.end : stream->told_end);
	/* Somebody else may make room, as long as the record can be found. */
	return position >= stream->ring.end &&
	       (stream->eof ||
		(coop_process_removed(coop_process_of(stream->output)) && stuck(follow, stream)));
}

static bool at_end(const struct coop_follow *follow)
{
	const struct coop_process *process = follow->request->process;

	if (!coop_process_told(process) || follow->fetch ||
	    (follow->tidy && !coop_process_tidy(process)))
		return false;
	if (follow->by_event)
		return follow->cursor >= process->output.exit_cursor;
	for (int i = 0; i < process->output.count; i++) {
		if (follow->wanted[process->output.streams[i].number] &&
		    !stream_at_end(follow, &process->output.streams[i]))
			return false;
	}
	return true;
}

/* Adds frames to the connection's output until about `budget` bytes or until there is nothing more;
 * ends the follow when its end is reached (then it is gone). Returns whether anything was added. */
static bool fill(struct coop_follow *follow, uint64_t budget)
{
	if (follow->fetch)
		return false;
	bool any = follow->by_event ? fill_events(follow, budget) : fill_bytes(follow, budget);
	if (!at_end(follow))
		return any;
	finish(follow, follow->until_eof ? "eof" : "exit");
	return true;
}

/* `tail` begins at what can still be read: what is gone by now is no gap of this reader's. */
static void set_positions(struct coop_follow *follow, struct coop_process *process,
			  const json_t *args)
{
	const json_t *from = coop_arg(args, "from");
	int64_t tail = coop_arg_int(args, "tail", -1);

	for (int i = 0; i < process->output.count; i++) {
		const struct coop_outlet *stream = &process->output.streams[i];
		const char *name = coop_stream_name(stream->number);
		uint64_t end = stream->ring.end;
		follow->position[stream->number] = (uint64_t)coop_arg_int(from, name, 0);
		if (tail >= 0) {
			uint64_t start = coop_stream_next_readable(
				stream, end > (uint64_t)tail ? end - (uint64_t)tail : 0);
			follow->position[stream->number] = start;
		}
	}
}

static int choose_streams(struct coop_follow *follow, const struct coop_process *process,
			  const json_t *args, struct coop_err *err)
{
	const json_t *streams = coop_arg(args, "streams");

	for (int i = 0; !streams && i < process->output.count; i++)
		follow->wanted[process->output.streams[i].number] = true;
	for (size_t i = 0; i < json_array_size(streams); i++) {
		unsigned number = coop_stream_number(json_string_value(json_array_get(streams, i)));
		if (!coop_output_stream((struct coop_output *)(uintptr_t)&process->output, number))
			return coop_err_field(
				err, COOP_INVALID_INPUT, "streams",
				"the process has no stream %s%s", coop_stream_name(number),
				process->terms.merged ? ": stderr is merged into stdout" : "");
		follow->wanted[number] = true;
	}
	return 0;
}

/* Arguments that are right alone and wrong together. */
static int check_together(const json_t *args, bool by_event, struct coop_err *err)
{
	if (!by_event && coop_arg(args, "since"))
		return coop_err_field(err, COOP_INVALID_INPUT, "since", "since needs mode events");
	if (!by_event && coop_arg_bool(args, "notes", false))
		return coop_err_field(err, COOP_INVALID_INPUT, "notes", "notes needs mode events");
	for (const char *const *name = (const char *const[]){"from", "tail", "drain", NULL}; *name;
	     name++) {
		if (by_event && coop_arg(args, *name))
			return coop_err_field(err, COOP_INVALID_INPUT, *name, "%s needs mode bytes",
					      *name);
	}
	if (by_event && !strcmp(coop_arg_string(args, "until", "exit"), "eof"))
		return coop_err_field(err, COOP_INVALID_INPUT, "until",
				      "until eof needs mode bytes: the last event is the exit");
	if (coop_arg(args, "from") && coop_arg(args, "tail"))
		return coop_err_field(err, COOP_INVALID_INPUT, "tail",
				      "tail does not go with from");
	return 0;
}

/* `hold`: from where it begins. 0, or the error filled. */
static int begin_hold(struct coop_follow *follow, struct coop_process *process, const json_t *args,
		      struct coop_err *err)
{
	const struct coop_request *request = follow->request;
	uint64_t positions[4];

	if (!coop_arg_bool(args, "hold", false))
		return 0;
	if (coop_lookup_owned(request, process, err) < 0)
		return -1;
	for (unsigned i = 0; i < 4; i++)
		positions[i] = follow->wanted[i] ? follow->position[i] : UINT64_MAX;
	return coop_holder_begin(&follow->holder, process, request->conn,
				 follow->by_event ? follow->cursor : UINT64_MAX, positions, err);
}

/* Where it begins, and how it goes on. 0, or the error filled. */
static int begin(struct coop_follow *follow, struct coop_process *process, const json_t *args,
		 struct coop_err *err)
{
	follow->by_event = !strcmp(coop_arg_string(args, "mode", "bytes"), "events");
	follow->until_eof = !strcmp(coop_arg_string(args, "until", "exit"), "eof");
	follow->drain = coop_arg_bool(args, "drain", false);
	follow->tidy = coop_arg_bool(args, "tidy", false);
	follow->cursor = (uint64_t)coop_arg_int(args, "since", 0);
	follow->bytes_known = coop_index_bytes_before(&process->output.index, follow->cursor,
						      &follow->bytes_before);
	set_positions(follow, process, args);
	follow->wanted[COOP_NOTE_STREAM] = coop_arg_bool(args, "notes", false);
	return begin_hold(follow, process, args, err);
}

int coop_follow_check(const json_t *args, struct coop_err *err)
{
	return check_together(args, !strcmp(coop_arg_string(args, "mode", "bytes"), "events"), err);
}

int coop_follow_begin(struct coop_request *request, struct coop_process *process,
		      const json_t *args, struct coop_err *err)
{
	struct coop_follow *follow = coop_mem_zalloc(sizeof *follow);

	if (!follow)
		return coop_err_no_memory(err);
	follow->request = request;
	if ((coop_arg_bool(args, "drain", false) && coop_lookup_owned(request, process, err) < 0) ||
	    choose_streams(follow, process, args, err) < 0 ||
	    begin(follow, process, args, err) < 0) {
		free(follow);
		return -1;
	}
	coop_process_hold(process, request);
	request->state = follow;
	request->on_drop = detach;
	coop_process_reader_begin(process);
	coop_list_add(&process->audience.followers, &follow->in_process);
	coop_list_add(&request->conn->follows, &follow->in_conn);
	coop_meters_of(request->keeper)->followers++;
	coop_conn_touch(request->conn);
	return 0;
}

void coop_op_follow(struct coop_request *request)
{
	struct coop_process *process = coop_lookup_named(request);
	struct coop_err err = {0};
	struct coop_jsonw w;

	if (!process)
		return;
	if (coop_follow_check(request->args, &err) < 0 ||
	    coop_follow_begin(request, process, request->args, &err) < 0) {
		coop_request_fail(request, &err);
		return;
	}
	/* As far as the keeper knows by itself: a look at the kernel would come between a new
	 * process and its output. */
	coop_request_event(request, "attached", &w);
	coop_record_show(process, COOP_RECORD_CACHED, request->conn, &w, "process");
	coop_request_event_end(request, &w);
}

static void on_phase(struct coop_process *process, enum coop_phase phase)
{
	if (phase == COOP_PHASE_TOLD)
		wake(process);
}

const struct coop_observer coop_follow_observer = {.on_phase = on_phase, .on_news = wake};

/* Followers take turns, so that a busy one cannot keep the others from the client. Returns whether
 * any had something. */
static bool on_room(struct coop_conn *conn)
{
	bool any = false;

	if (!coop_list_empty(&conn->follows))
		coop_conn_take_buffer(conn);
	COOP_LIST_EACH(&conn->follows, link)
	{
		if (!coop_conn_has_room(conn))
			break;
		any = fill(COOP_LIST_ITEM(link, struct coop_follow, in_conn), COOP_CONN_ROOM / 2) ||
		      any;
	}
	if (!coop_list_empty(&conn->follows)) {
		struct coop_link *first = conn->follows.next;
		coop_list_remove(first);
		coop_list_add(&conn->follows, first);
	}
	return any;
}

const struct coop_conn_watch coop_follow_watch = {.on_room = on_room};
