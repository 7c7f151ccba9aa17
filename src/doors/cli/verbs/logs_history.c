#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "coop.h"
#include "doors/cli/cli.h"
#include "doors/cli/record.h"
#include "doors/cli/terminal/encoder.h"
#include "doors/cli/verbs/logs.h"

#define PAGE (1 << 20)

/* One answer to a combined read: chunks in order of arrival. Their bytes lie in `bytes`, one after
 * the other. */
struct page {
	struct coop_chunk *chunks;
	size_t count;
	struct coop_buf bytes;
	json_t *result;
	int status; /* 1: not answered yet */
	struct coop_error error;
};

static uint64_t stream_end(const json_t *record, enum coop_stream stream)
{
	const json_t *streams = json_object_get(record, "streams");
	return (uint64_t)cli_number(json_object_get(streams, cli_stream_name(stream)), "end");
}

/* Brings one stream's bytes from its position up to `end`. */
static int read_bytes(struct cli_logs_history *h, enum coop_stream stream, uint64_t end,
		      struct coop_error *error)
{
	uint64_t *position = &h->position[stream];
	while (*position < end) {
		const uint64_t max = end - *position < PAGE ? end - *position : PAGE;
		json_t *args = json_pack("{s:s, s:s, s:I, s:I}", "id", h->id, "stream",
					 cli_stream_name(stream), "cursor", (json_int_t)*position,
					 "max", (json_int_t)max);
		COOP_AUTO_FREE char *text = json_dumps(args, JSON_COMPACT);
		json_decref(args);
		struct coop_reply *reply;
		int r = coop_call(h->cli->coop, "read", text, NULL, 0, &reply, error);
		if (r < 0)
			return r;
		json_t *result = json_loads(coop_reply_json(reply), 0, NULL);
		struct coop_chunk chunk = {.stream = stream,
					   .offset = (uint64_t)cli_number(result, "cursor"),
					   .cursor = COOP_NO_CURSOR};
		h->lost[stream] += (uint64_t)cli_number(result, "bytes_dropped");
		json_decref(result);
		chunk.data = coop_reply_data(reply, stream, &chunk.size);
		if (chunk.size)
			h->take(h->user, &chunk, NULL);
		/* Nothing more to be had, although it was counted: the record is older than this
		 * answer. */
		const bool more = chunk.size > 0 || chunk.offset > *position;
		*position = chunk.offset + chunk.size;
		coop_reply_free(reply);
		if (!more)
			return 0;
	}
	return 0;
}

static void page_data(void *user, uint64_t request, const struct coop_chunk *chunk)
{
	struct page *page = user;
	struct coop_chunk *chunks = reallocarray(page->chunks, page->count + 1, sizeof(*chunks));
	if (!chunks)
		return;
	page->chunks = chunks;
	if (coop_buf_append(&page->bytes, chunk->data, chunk->size) == 0)
		page->chunks[page->count++] = *chunk;
}

static void page_done(void *user, uint64_t request, int status, const char *json,
		      const struct coop_error *error)
{
	struct page *page = user;
	page->status = status;
	if (status < 0)
		page->error = *error;
	else
		page->result = json_loads(json, 0, NULL);
}

static void page_free(struct page *page)
{
	free(page->chunks);
	coop_buf_clear(&page->bytes);
	json_decref(page->result);
}

static int page_read(struct cli_logs_history *h, uint64_t cursor, struct page *page,
		     struct coop_error *error)
{
	const struct coop_handler handler = {.data = page_data, .done = page_done, .user = page};
	*page = (struct page){.status = 1};
	int r = cli_submit(h->cli, "read",
			   json_pack("{s:s, s:s, s:I, s:i, s:b}", "id", h->id, "stream", "combined",
				     "cursor", (json_int_t)cursor, "max", PAGE, "times", h->times),
			   NULL, 0, &handler, NULL, error);
	while (r >= 0 && page->status == 1)
		r = coop_run(h->cli->coop, -1, error);
	if (page->status < 0) {
		*error = page->error;
		return page->status;
	}
	return r < 0 ? r : 0;
}

/* When the event with this number came. Events stand in the order of their numbers, as the chunks
 * do: `*at` moves on. */
static const char *event_time(const json_t *events, uint64_t cursor, size_t *at)
{
	for (; *at < json_array_size(events); (*at)++) {
		const json_t *event = json_array_get(events, *at);
		const uint64_t number = (uint64_t)cli_number(event, "cursor");
		if (number == cursor)
			return cli_text(event, "at");
		if (number > cursor)
			break;
	}
	return NULL;
}

/* Leaves out what lies before the position (--from). False: all of it does. */
static bool cut_known(struct coop_chunk *chunk, uint64_t position)
{
	const uint64_t known = position > chunk->offset ? position - chunk->offset : 0;
	if (known >= chunk->size)
		return false;
	chunk->data = (const char *)chunk->data + known;
	chunk->offset += known;
	chunk->size -= known;
	return true;
}

/* Brings the page's chunks, and before each what the index has forgotten of its stream. */
static int page_take(struct cli_logs_history *h, const struct page *page, struct coop_error *error)
{
	const char *data = (const char *)coop_buf_front(&page->bytes);
	size_t event = 0;
	for (size_t i = 0; i < page->count; i++) {
		struct coop_chunk chunk = page->chunks[i];
		chunk.data = data;
		data += chunk.size;
		if (!h->streams[chunk.stream] || !cut_known(&chunk, h->position[chunk.stream]))
			continue;
		int r = read_bytes(h, chunk.stream, chunk.offset, error);
		if (r < 0)
			return r;
		const char *at = h->times ? event_time(json_object_get(page->result, "events"),
						       chunk.cursor, &event)
					  : NULL;
		h->take(h->user, &chunk, at);
		h->position[chunk.stream] = chunk.offset + chunk.size;
	}
	return 0;
}

static int read_by_events(struct cli_logs_history *h, struct coop_error *error)
{
	const uint64_t end = (uint64_t)json_integer_value(cli_member(h->record, "events", "next"));
	uint64_t cursor = 0;
	while (cursor < end) {
		struct page page;
		int r = page_read(h, cursor, &page, error);
		const uint64_t next = r < 0 ? 0 : (uint64_t)cli_number(page.result, "next");
		if (r >= 0)
			r = page_take(h, &page, error);
		page_free(&page);
		if (r < 0)
			return r;
		if (next <= cursor)
			break;
		cursor = next;
	}
	return 0;
}

int cli_logs_read(struct cli_logs_history *h, struct coop_error *error)
{
	unsigned count = 0;
	for (unsigned i = 0; i < CLI_STREAMS; i++)
		count += h->streams[i];
	int r = 0;
	/* One stream alone is in order by itself; the index is needed for the order of two, and for
	 * times. */
	if (count > 1 || h->times)
		r = read_by_events(h, error);
	/* What came after the last event: descendants print on after the end, and are in no
	 * index. */
	for (unsigned i = 0; i < CLI_STREAMS && r >= 0; i++)
		if (h->streams[i])
			r = read_bytes(h, (enum coop_stream)i,
				       stream_end(h->record, (enum coop_stream)i), error);
	return r;
}
