/* A reader of a feed: what it is sent next, and from where. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/list.h"
#include "base/mem.h"
#include "doors/http/net/net.h"
#include "doors/http/net/shared.h"
#include "doors/http/runtime/feed.h"
#include "doors/http/runtime/feed_state.h"
#include "doors/http/runtime/feed_window.h"
#include "doors/http/users/user.h"

/* What may wait in a reader's sink before it is given more. */
#define PENDING_MAX (256u << 10)
/* Of one read that catches up. */
#define READ_MAX (128u << 10)

/* An event as a read brings it; its bytes follow. */
struct held {
	uint64_t cursor;
	size_t size;
	enum coop_stream stream;
};

static struct coop_http_counts *counts_of(const struct coop_feed_reader *reader)
{
	return &reader->feed->feeds->net->counts;
}

static uint64_t plus(uint64_t count, uint64_t more)
{
	return count == COOP_FEED_UNKNOWN ? count : count + more;
}

/* Says that all events up to `to` are lost. `bytes` are those of all events before `to`. */
static void send_gap(struct coop_feed_reader *reader, uint64_t to, uint64_t bytes)
{
	const struct coop_feed_dialect *dialect = reader->feed->dialect;
	char text[COOP_FEED_GAP_MAX];
	uint64_t lost = COOP_FEED_UNKNOWN;

	if (bytes != COOP_FEED_UNKNOWN && reader->bytes != COOP_FEED_UNKNOWN &&
	    bytes >= reader->bytes) {
		lost = bytes - reader->bytes;
		reader->lost += lost;
	} else {
		reader->lost_more = true;
	}
	size_t size = dialect->gap(text, reader->cursor, to, lost);
	reader->cursor = to;
	reader->bytes = bytes;
	counts_of(reader)->gaps++;
	dialect->say(reader->sink, text, size);
}

static void send_block(struct coop_feed_reader *reader, const struct coop_feed_block *block)
{
	uint64_t bytes = plus(block->bytes_before, block->bytes);
	size_t size = block->data->size;
	size_t from =
		reader->block == block->first
			? (size_t)reader->offset
			: coop_feed_window_offset(&reader->feed->window, block, reader->cursor);

	if (bytes != COOP_FEED_UNKNOWN && reader->bytes != COOP_FEED_UNKNOWN)
		counts_of(reader)->output_bytes += bytes - reader->bytes;
	reader->passed += (size - from) / 4 * 3; /* as much as base64 holds, about */
	reader->block = block->first;
	reader->offset = size;
	reader->cursor = block->next;
	reader->bytes = bytes;
	reader->feed->dialect->send(reader->sink, block->data, from, size);
}

static void send_exit(struct coop_feed_reader *reader)
{
	const struct coop_feed_dialect *dialect = reader->feed->dialect;
	const struct coop_buf *text = &reader->feed->exit;
	bool lossy = reader->lost || reader->lost_more;
	COOP_AUTO_FREE char *told =
		lossy ? dialect->lossy_exit(text, reader->lost, reader->lost_more) : NULL;

	reader->over = true;
	if (told)
		dialect->say(reader->sink, told, strlen(told));
	else
		dialect->say(reader->sink, (const char *)coop_buf_front(text), coop_buf_size(text));
	if (!reader->gone)
		dialect->close(reader->sink, COOP_FEED_EXITED, "");
	coop_feed_hold_end(reader);
}

/* Keeps an event until the answer says what is missing between them. */
static void on_data(void *user, uint64_t request, const struct coop_chunk *chunk)
{
	struct coop_feed_reader *reader = user;
	struct held held = {.cursor = chunk->cursor, .size = chunk->size, .stream = chunk->stream};

	if (reader->starved)
		return;
	uint8_t *at = coop_buf_reserve(&reader->chunks, sizeof held + chunk->size);
	if (!at) {
		reader->starved = true;
		return;
	}
	memcpy(mempcpy(at, &held, sizeof held), chunk->data, chunk->size);
	coop_buf_commit(&reader->chunks, sizeof held + chunk->size);
}

/* Takes the next event out of what was kept. Its bytes are good until the buffer changes. */
static bool take_chunk(struct coop_buf *chunks, size_t *at, struct coop_chunk *ret)
{
	struct held held;

	if (coop_buf_size(chunks) - *at < sizeof held)
		return false;
	memcpy(&held, coop_buf_front(chunks) + *at, sizeof held);
	*ret = (struct coop_chunk){.stream = held.stream,
				   .cursor = held.cursor,
				   .data = coop_buf_front(chunks) + *at + sizeof held,
				   .size = held.size};
	*at += sizeof held + held.size;
	return true;
}

/* Sends a run of events without holes, as one block. */
static int send_run(struct coop_feed_reader *reader, size_t from, size_t to)
{
	const struct coop_feed_dialect *dialect = reader->feed->dialect;
	const char *common = reader->feed->common;
	struct coop_chunk chunk;
	size_t size = 0;

	for (size_t at = from; at < to && take_chunk(&reader->chunks, &at, &chunk);)
		size += dialect->event_size(common, &chunk);
	struct coop_http_shared *block = size ? coop_shared_new(size) : NULL;
	if (!block)
		return size ? -1 : 0;
	for (size_t at = from; at < to && take_chunk(&reader->chunks, &at, &chunk);) {
		uint8_t *place = block->data + block->size;
		block->size += (size_t)(dialect->event_write(common, &chunk, place) - place);
		reader->cursor = chunk.cursor + 1;
		reader->bytes = plus(reader->bytes, coop_feed_chunk_bytes(&chunk));
		reader->passed += chunk.size;
		counts_of(reader)->output_bytes += coop_feed_chunk_bytes(&chunk);
	}
	dialect->send(reader->sink, block, 0, block->size);
	coop_shared_unref(block);
	return 0;
}

static uint64_t number(const json_t *object, const char *name)
{
	json_int_t value = json_integer_value(json_object_get(object, name));

	return value > 0 ? (uint64_t)value : 0;
}

/* Bytes of the lost events that begin at `from` and end at `to`. */
static uint64_t lost_bytes(const json_t *gaps, uint64_t from, uint64_t to)
{
	for (size_t i = 0; i < json_array_size(gaps); i++) {
		const json_t *gap = json_array_get(gaps, i);
		if (number(gap, "from_cursor") == from && number(gap, "to_cursor") == to)
			return number(gap, "bytes");
	}
	return COOP_FEED_UNKNOWN;
}

/* What was asked for first and is lost. A reader that began in the middle does not know how many
 * bytes came before it; the keeper does, if it still knows the event. */
static void tell_head(struct coop_feed_reader *reader, const json_t *result)
{
	const json_t *gaps = json_object_get(result, "gaps"),
		     *first = json_object_get(result, "first");
	uint64_t begin = number(result, "cursor"), before = number(result, "bytes_before");
	uint64_t dropped = number(result, "bytes_dropped");

	if (begin > reader->cursor && reader->bytes == COOP_FEED_UNKNOWN &&
	    json_is_integer(first) && number(result, "first") <= reader->cursor) {
		for (size_t i = 0; i < json_array_size(gaps); i++)
			dropped -= number(json_array_get(gaps, i), "bytes");
		reader->bytes = before - dropped;
	}
	if (begin > reader->cursor)
		send_gap(reader, begin, before);
	else if (begin == reader->cursor)
		reader->bytes = before;
}

static void tell_hole(struct coop_feed_reader *reader, const json_t *gaps, uint64_t to)
{
	uint64_t lost = lost_bytes(gaps, reader->cursor, to);

	send_gap(reader, to, lost == COOP_FEED_UNKNOWN ? lost : plus(reader->bytes, lost));
}

/* Sends what a read has brought. Without memory what is left is read again. */
static void deliver(struct coop_feed_reader *reader, const json_t *result)
{
	const json_t *gaps = json_object_get(result, "gaps");
	uint64_t next = number(result, "next");
	size_t at = 0, begin = 0, end = 0;
	struct coop_chunk chunk;

	tell_head(reader, result);
	uint64_t expected = reader->cursor;
	while (!reader->gone && take_chunk(&reader->chunks, &at, &chunk)) {
		if (chunk.cursor < reader->cursor)
			begin = at; /* it has been sent */
		if (chunk.cursor > expected) {
			if (send_run(reader, begin, end) < 0)
				return;
			begin = end;
			if (!reader->gone)
				tell_hole(reader, gaps, chunk.cursor);
		}
		expected = chunk.cursor + 1;
		end = at;
	}
	if (!reader->gone && send_run(reader, begin, end) < 0)
		return;
	if (!reader->gone && reader->cursor < next)
		tell_hole(reader, gaps, next);
}

/* The first reader says where the feed begins: not before what it has read, and not beyond what
 * there is. */
static void begin_feed(struct coop_feed_reader *reader, const json_t *result)
{
	uint64_t next = number(result, "next"), bytes = COOP_FEED_UNKNOWN;

	if (reader->feed->following)
		return;
	if (next == reader->cursor)
		bytes = reader->bytes;
	else if (next < reader->cursor) /* it asked for what is still to come: nothing was read */
		bytes = number(result, "bytes_before");
	coop_feed_follow(reader->feed, next, bytes);
}

static void answered(struct coop_feed_reader *reader, const char *json)
{
	uint64_t before = reader->cursor;
	struct coop_feed_block *block;
	uint64_t to;

	json_t *result = json_loads(json, 0, NULL);
	if (!result || reader->starved) {
		coop_feed_retry(reader->feed);
	} else {
		deliver(reader, result);
		begin_feed(reader, result);
		/* No way to get on but over what cannot be had. */
		if (!reader->gone && reader->cursor == before &&
		    coop_feed_window_find(&reader->feed->window, before, &block, &to) ==
			    COOP_FEED_BEHIND &&
		    number(result, "next") <= before)
			send_gap(reader, to, coop_feed_window_bytes_at(&reader->feed->window, to));
		coop_feed_reader_pump(reader);
	}
	json_decref(result);
}

/* The record has gone, but not what the window holds. */
static void skip(struct coop_feed_reader *reader)
{
	struct coop_feed *feed = reader->feed;
	struct coop_feed_block *block;
	uint64_t to;

	if (!feed->following)
		coop_feed_follow(feed, reader->cursor, reader->bytes);
	else if (coop_feed_window_find(&feed->window, reader->cursor, &block, &to) ==
		 COOP_FEED_BEHIND)
		send_gap(reader, to, coop_feed_window_bytes_at(&feed->window, to));
	coop_feed_touch(feed);
}

static void on_done(void *user, uint64_t request, int status, const char *json,
		    const struct coop_error *error)
{
	struct coop_feed_reader *reader = user;

	reader->read = NULL;
	/* It may go while it is sent to. */
	reader->feed->busy++;
	if (status == 0)
		answered(reader, json);
	else if (!strcmp(error->code, "permission_denied"))
		coop_feed_dismiss(reader->feed, COOP_FEED_DENIED,
				  "the token is not valid any more");
	else if (!strcmp(error->code, "no_such_process"))
		skip(reader);
	else
		coop_feed_retry(reader->feed);
	coop_buf_clear(&reader->chunks);
	reader->starved = false;
	reader->feed->busy--;
	if (reader->gone)
		coop_feed_touch(reader->feed);
}

static void catch_up(struct coop_feed_reader *reader)
{
	struct coop_handler handler = {.data = on_data, .done = on_done, .user = reader};

	reader->behind = true;
	reader->read = coop_user_call(
		reader->feed->user, "read",
		json_pack("{s:s,s:s,s:I,s:i,s:b}", "id", reader->feed->id, "stream", "combined",
			  "cursor", (json_int_t)reader->cursor, "max", (int)READ_MAX, "notes", 1),
		NULL, 0, &handler);
	if (!reader->read)
		coop_feed_retry(reader->feed);
}

/* One step. Returns whether there may be another. */
static bool step(struct coop_feed_reader *reader)
{
	const struct coop_feed_window *window = &reader->feed->window;
	struct coop_feed_block *block;
	uint64_t to;

	switch (coop_feed_window_find(window, reader->cursor, &block, &to)) {
	case COOP_FEED_READY:
		reader->behind = false;
		send_block(reader, block);
		return true;
	case COOP_FEED_LOST:
		reader->behind = false;
		send_gap(reader, to, coop_feed_window_bytes_at(window, to));
		return true;
	case COOP_FEED_BEHIND:
		catch_up(reader);
		return false;
	case COOP_FEED_AT_END:
		break;
	}
	reader->behind = false;
	if (reader->cursor == window->next)
		reader->bytes = window->bytes;
	if (coop_feed_ended(reader->feed))
		send_exit(reader);
	return false;
}

void coop_feed_reader_pump(struct coop_feed_reader *reader)
{
	struct coop_feed *feed = reader->feed;

	if (reader->gone || reader->over || reader->read)
		return;
	if (!feed->following && reader->cursor) {
		catch_up(reader);
		return;
	}
	if (!feed->following)
		coop_feed_follow(feed, 0, 0);
	while (!reader->gone && feed->dialect->pending(reader->sink) < PENDING_MAX && step(reader))
		;
	coop_feed_hold_moved(reader);
}

struct coop_feed_reader *coop_feed_read(struct coop_feed *feed, struct coop_feed_sink *sink,
					uint64_t since)
{
	struct coop_feed_reader *reader = coop_mem_zalloc(sizeof *reader);

	if (!reader)
		return NULL;
	*reader = (struct coop_feed_reader){
		.feed = coop_feed_ref(feed),
		.sink = sink,
		.cursor = since,
		.bytes = since ? COOP_FEED_UNKNOWN : 0,
		.block = UINT64_MAX,
	};
	coop_list_push(&feed->readers, &reader->link);
	counts_of(reader)->subscribers++;
	/* The keeper is asked at once; nothing is sent before the caller knows its reader. */
	if (!feed->following && since)
		catch_up(reader);
	else if (!feed->following)
		coop_feed_follow(feed, 0, 0);
	else
		coop_feed_resume(feed);
	return reader;
}

void coop_feed_reader_writable(struct coop_feed_reader *reader)
{
	struct coop_feed *feed = reader->feed;

	feed->busy++;
	coop_feed_reader_pump(reader);
	feed->busy--;
	if (reader->gone)
		coop_feed_touch(feed);
	else if (reader->cursor >= feed->window.next)
		coop_feed_tidy(feed); /* it may have been the last */
}

void coop_feed_reader_free(struct coop_feed_reader *reader)
{
	struct coop_feed *feed = reader->feed;

	coop_user_drop(reader->read);
	coop_feed_hold_end(reader);
	coop_buf_clear(&reader->chunks);
	coop_list_remove(&reader->link);
	free(reader);
	if (coop_list_empty(&feed->readers)) {
		/* Nobody listens: the keeper need not tell. */
		coop_user_drop(COOP_TAKE_PTR(feed->follow));
		(void)uv_timer_stop(&feed->retry);
		feed->following = false;
		coop_feed_window_clear(&feed->window);
		feed->retry_ms = feed->waited_ms = 0;
	}
	coop_feed_unref(feed);
}

void coop_feed_reader_end(struct coop_feed_reader *reader)
{
	if (!reader || reader->gone)
		return;
	reader->gone = true;
	counts_of(reader)->subscribers--;
	if (reader->feed->busy)
		coop_feed_touch(reader->feed);
	else
		coop_feed_reader_free(reader);
}
