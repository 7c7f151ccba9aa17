#include "keeper/process/holder.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "interface/schema.h"
#include "keeper/conf/conf.h"
#include "keeper/core/keeper.h"
#include "keeper/core/life.h"
#include "keeper/link/connection.h"
#include "keeper/link/request.h"
#include "keeper/link/watch.h"
#include "keeper/output/index.h"
#include "keeper/output/stream.h"
#include "keeper/process/deadlines.h"
#include "keeper/process/eviction.h"
#include "keeper/process/lookup.h"
#include "keeper/process/observer.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"

#define MS 1000000u
/* A stream is not read in crumbs: reading waits for that much room, or for a quarter of a small
 * ring. */
#define ROOM_MIN (64u << 10)
/* Events that are left free in the index: for what the end adds to it. */
#define EVENTS_SPARE 4u
/* An owner tells how far it has come after each eighth of what may wait for it: early enough that a
 * fast reader never makes the process wait, and rarely enough to cost nothing. */
#define STEPS 8u

static struct coop_holder *item(struct coop_link *link)
{
	return COOP_LIST_ITEM(link, struct coop_holder, in_process);
}

static bool numbered(const struct coop_holder *holder)
{
	return holder->number != 0;
}

/* Bytes that the index has room for, beside what the holder has not passed. A piece that splits no
 * character is up to three bytes smaller than a chunk. */
static uint64_t index_room(const struct coop_holder *holder)
{
	const struct coop_index *index = &holder->process->output.index;
	uint64_t from = holder->cursor > index->first ? holder->cursor : index->first;
	uint64_t used = (from < index->next ? index->next - from : 0) + EVENTS_SPARE;

	if (holder->cursor == UINT64_MAX)
		return SIZE_MAX;
	return used + 2 < index->limit ? (index->limit - used - 2) * (COOP_INDEX_CHUNK - 3) : 0;
}

static size_t room_beside(const struct coop_holder *holder, const struct coop_outlet *stream)
{
	const struct coop_ring *ring = &stream->ring;
	uint64_t from = holder->position[stream->number], events = index_room(holder);
	uint64_t least = ring->limit / 4 < ROOM_MIN ? ring->limit / 4 : ROOM_MIN;

	if (from == UINT64_MAX)
		return SIZE_MAX;
	if (from < ring->start)
		from = ring->start; /* that was lost before */
	uint64_t used = ring->end > from ? ring->end - from : 0;
	uint64_t room = used < ring->limit ? ring->limit - used : 0;
	if (room > events)
		room = events;
	return room < least ? 0 : (size_t)room;
}

size_t coop_holders_room(const struct coop_outlet *stream)
{
	size_t room = SIZE_MAX;

	if (stream->overflow != COOP_OVERFLOW_DROP_OLDEST)
		return room;
	COOP_LIST_EACH(&coop_process_of(stream->output)->audience.holders, link)
	{
		size_t beside = room_beside(item(link), stream);
		if (beside < room)
			room = beside;
	}
	return room;
}

bool coop_holders_waited_for(const struct coop_process *process)
{
	for (int i = 0; i < process->output.count; i++) {
		if (process->output.streams[i].held)
			return true;
	}
	return false;
}

/* Whether something depends on this one's moving: a stream that is not read, or, after the end, the
 * record that is kept for it. */
static bool awaited(const struct coop_holder *holder)
{
	const struct coop_process *process = holder->process;

	if (coop_process_told(process) && numbered(holder))
		return true;
	for (int i = 0; i < process->output.count; i++) {
		const struct coop_outlet *stream = &process->output.streams[i];
		if (stream->held && !room_beside(holder, stream))
			return true;
	}
	return false;
}

/* When its patience is over. What a follow has put on its way may take long to be read: each byte
 * that the client takes is a move. */
static uint64_t patience_over(const struct coop_holder *holder)
{
	uint64_t moved = holder->moved;

	if (!numbered(holder) && holder->conn->sent_at > moved)
		moved = holder->conn->sent_at;
	return moved + (uint64_t)coop_conf_of(holder->process->keeper)->settings.hold_idle_ms * MS;
}

static void set_deadline(struct coop_process *process)
{
	uint64_t first = 0;

	COOP_LIST_EACH(&process->audience.holders, link)
	{
		uint64_t over = patience_over(item(link));
		if (awaited(item(link)) && (!first || over < first))
			first = over;
	}
	coop_deadlines_set(process, COOP_DUE_HOLD, first);
}

void coop_holders_wait(struct coop_process *process)
{
	uint64_t now = coop_clock_now();

	COOP_LIST_EACH(&process->audience.holders, link)
	{
		if (awaited(item(link)))
			item(link)->moved = now;
	}
	set_deadline(process);
	coop_deadlines_pause_drain(process);
	/* What is killed is dead, whoever still reads what it wrote. */
	COOP_TELL(process, on_held);
}

/* Somebody has moved or gone: what waited for that goes on. */
static void go_on(struct coop_process *process)
{
	(void)coop_process_ref(process);
	for (int i = 0; i < process->output.count; i++) {
		if (process->output.streams[i].held)
			coop_stream_resume(&process->output.streams[i]);
	}
	if (!coop_holders_waited_for(process))
		coop_deadlines_resume_drain(process);
	coop_process_unref(process);
}

/* Takes it out of everything; a numbered one is freed. The caller holds the process, and lets it go
 * on. */
static void drop(struct coop_holder *holder)
{
	struct coop_process *process = holder->process;

	if (!holder->in_process.next)
		return;
	coop_list_remove(&holder->in_process);
	coop_list_remove(&holder->in_conn);
	process->audience.holder_count--;
	if (!numbered(holder))
		return;
	free(holder);
	coop_eviction_look(process->keeper);
	coop_process_reader_end(process);
	coop_process_unref(process);
}

void coop_holder_end(struct coop_holder *holder)
{
	if (!holder->in_process.next)
		return;
	struct coop_process *process = coop_process_ref(holder->process);
	drop(holder);
	go_on(process);
	coop_process_unref(process);
}

static void on_over(struct coop_conn *conn)
{
	while (!coop_list_empty(&conn->holders))
		coop_holder_end(COOP_LIST_ITEM(conn->holders.next, struct coop_holder, in_conn));
}

void coop_holders_clear(struct coop_process *process)
{
	(void)coop_process_ref(process);
	while (!coop_list_empty(&process->audience.holders))
		drop(item(process->audience.holders.next));
	go_on(process);
	coop_process_unref(process);
}

static void on_due(struct coop_process *process, enum coop_deadline which)
{
	if (which != COOP_DUE_HOLD)
		return;
	uint64_t now = coop_clock_now();

	COOP_LIST_EACH(&process->audience.holders, link)
	{
		if (awaited(item(link)) && patience_over(item(link)) <= now)
			drop(item(link));
	}
	go_on(process);
	set_deadline(process);
}

static void on_phase(struct coop_process *process, enum coop_phase phase)
{
	if (phase != COOP_PHASE_TOLD)
		return;
	bool failed = process->end.cause == COOP_CAUSE_SPAWN_FAILED;

	COOP_LIST_EACH(&process->audience.holders, link)
	{
		struct coop_holder *holder = item(link);
		if (!numbered(holder))
			continue;
		holder->moved = coop_clock_now();
		if (failed || holder->cursor >= process->output.exit_cursor)
			drop(holder);
	}
	set_deadline(process);
	go_on(process);
}

/* Where the first event from `cursor` on of each stream begins; bytes that are no event yet come
 * after all of them. */
static void find_positions(struct coop_holder *holder)
{
	struct coop_process *process = holder->process;
	const struct coop_index *index = &process->output.index;

	for (int i = 0; i < process->output.count; i++)
		holder->position[process->output.streams[i].number] =
			process->output.streams[i].indexed;
	for (uint64_t n = index->next; n > holder->cursor;) {
		const struct coop_index_event *event = coop_index_get(index, --n);
		holder->position[event->stream] = event->offset;
	}
}

/* From where it begins, and not from the oldest that is kept: what is gone before that is not its
 * loss. */
int coop_holder_begin(struct coop_holder *holder, struct coop_process *process,
		      struct coop_conn *conn, uint64_t cursor, const uint64_t positions[4],
		      struct coop_err *err)
{
	const struct coop_index *index = &process->output.index;

	if (coop_life_stopping(process->keeper))
		return coop_err_set(err, COOP_UNAVAILABLE, "the keeper is shutting down");
	if (process->audience.holder_count == COOP_HOLDERS_MAX)
		return coop_err_set(err, COOP_QUOTA,
				    "%u readers hold this process back already, which is the most",
				    COOP_HOLDERS_MAX);
	holder->process = process;
	holder->conn = conn;
	holder->moved = coop_clock_now();
	holder->cursor = cursor;
	for (int i = 0; positions && i < 4; i++)
		holder->position[i] = positions[i];
	if (cursor != UINT64_MAX) {
		holder->cursor = cursor < index->first  ? index->first
				 : cursor > index->next ? index->next
							: cursor;
		find_positions(holder);
	}
	coop_list_add(&process->audience.holders, &holder->in_process);
	coop_list_add(&conn->holders, &holder->in_conn);
	process->audience.holder_count++;
	return 0;
}

/* It counts as a reader, so that the record is kept for it after the end. */
struct coop_holder *coop_holder_new(struct coop_process *process, struct coop_conn *conn,
				    uint64_t cursor, struct coop_err *err)
{
	struct coop_holder *holder = coop_mem_zalloc(sizeof *holder);

	if (!holder) {
		(void)coop_err_no_memory(err);
		return NULL;
	}
	if (coop_holder_begin(holder, process, conn, cursor, NULL, err) < 0) {
		free(holder);
		return NULL;
	}
	holder->number = ++process->audience.last_hold;
	(void)coop_process_ref(process);
	coop_process_reader_begin(process);
	return holder;
}

/* Event by event, as positions in the streams follow from the events alone. At the exit there is
 * nothing left to hold. */
void coop_holder_pass(struct coop_holder *holder, uint64_t cursor)
{
	if (!holder->in_process.next)
		return;
	struct coop_process *process = holder->process;
	const struct coop_index *index = &process->output.index;
	if (holder->cursor < index->first)
		holder->cursor = index->first;
	holder->moved = coop_clock_now();
	for (; holder->cursor < cursor && holder->cursor < index->next; holder->cursor++) {
		const struct coop_index_event *event = coop_index_get(index, holder->cursor);
		holder->position[event->stream] = event->offset + event->size;
	}
	if (numbered(holder) && coop_process_told(process) &&
	    holder->cursor >= process->output.exit_cursor)
		coop_holder_end(holder);
	else if (coop_holders_waited_for(process))
		go_on(process);
}

/* By bytes: of a follow that counts no events. */
void coop_holder_take(struct coop_holder *holder, unsigned stream, uint64_t position)
{
	if (!holder->in_process.next)
		return;
	holder->position[stream] = position;
	holder->moved = coop_clock_now();
	if (coop_holders_waited_for(holder->process))
		go_on(holder->process);
}

/* A step of 0 would have its owner tell all the time. */
static uint64_t at_least_one(uint64_t number)
{
	return number ? number : 1;
}

void coop_holder_write(const struct coop_holder *holder, struct coop_jsonw *w, const char *name)
{
	if (!holder) {
		coop_jsonw_null(w, name);
		return;
	}
	const struct coop_process *process = holder->process;
	coop_jsonw_begin(w, name);
	coop_jsonw_uint(w, "number", holder->number);
	coop_jsonw_uint(w, "cursor", holder->cursor);
	coop_jsonw_int(w, "idle_ms", coop_conf_of(process->keeper)->settings.hold_idle_ms);
	coop_jsonw_uint(w, "step_bytes",
			at_least_one(process->output.streams[0].ring.limit / STEPS));
	coop_jsonw_uint(w, "step_events", at_least_one(process->output.index.limit / STEPS));
	coop_jsonw_end(w);
}

/* A connection that starts a process with `hold` has made no other of it yet. */
const struct coop_holder *coop_holder_of(const struct coop_process *process,
					 const struct coop_conn *conn)
{
	COOP_LIST_EACH(&process->audience.holders, link)
	{
		if (numbered(item(link)) && item(link)->conn == conn)
			return item(link);
	}
	return NULL;
}

static struct coop_holder *find(struct coop_process *process, uint64_t number)
{
	COOP_LIST_EACH(&process->audience.holders, link)
	{
		if (numbered(item(link)) && item(link)->number == number)
			return item(link);
	}
	return NULL;
}

static void answer(struct coop_request *request, const struct coop_holder *holder)
{
	struct coop_jsonw w;

	coop_request_result(request, &w);
	coop_holder_write(holder, &w, "hold");
	coop_request_end(request, &w);
}

static void begin(struct coop_request *request, struct coop_process *process)
{
	uint64_t cursor = (uint64_t)coop_arg_int(request->args, "cursor", 0);
	struct coop_err err = {0};

	/* Of what has ended and has been read there is nothing to hold. */
	if (coop_process_receipt(process) ||
	    (coop_process_told(process) && cursor >= process->output.exit_cursor)) {
		answer(request, NULL);
		return;
	}
	const struct coop_holder *holder = coop_holder_new(process, request->conn, cursor, &err);
	if (!holder) {
		coop_request_fail(request, &err);
		return;
	}
	if (coop_process_told(process))
		set_deadline(process);
	answer(request, holder);
}

void coop_op_hold(struct coop_request *request)
{
	struct coop_process *process = coop_lookup_named(request);

	if (!process)
		return; /* and the request is gone */
	uint64_t number = (uint64_t)coop_arg_int(request->args, "hold", 0);
	if (!coop_arg(request->args, "hold")) {
		if (coop_arg_bool(request->args, "end", false)) {
			struct coop_err err = {0};
			(void)coop_err_field(&err, COOP_INVALID_INPUT, "end", "end needs hold");
			coop_request_fail(request, &err);
			return;
		}
		begin(request, process);
		return;
	}
	coop_process_hold(process, request);
	struct coop_holder *holder = find(process, number);
	if (holder && coop_arg_bool(request->args, "end", false))
		coop_holder_end(holder);
	else if (holder)
		coop_holder_pass(holder, (uint64_t)coop_arg_int(request->args, "cursor", 0));
	/* The process may have gone on, and ended: then there is nothing to hold any more. */
	answer(request, find(process, number));
}

const struct coop_observer coop_holders_observer = {.on_phase = on_phase, .on_due = on_due};
const struct coop_conn_watch coop_holders_watch = {.on_over = on_over};
