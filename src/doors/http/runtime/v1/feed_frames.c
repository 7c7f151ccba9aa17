#include "doors/http/runtime/v1/feed_frames.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/jsonw.h"
#include "base/text/base64.h"
#include "doors/http/net/ws.h"
#include "doors/http/runtime/v1/view.h"

#define HEAD_MAX 64
/* A client that has its exit may close by itself for that long. */
#define CLOSE_AFTER_MS 2000u

static struct coop_ws *ws_of(struct coop_feed_sink *sink)
{
	return (struct coop_ws *)sink;
}

/* `,"pid":"…","data":"` with the name as JSON has it: what stands between number and bytes. */
static char *make_common(const char *name)
{
	struct coop_buf text = {0};
	struct coop_jsonw w = {.out = &text, .comma = true};

	coop_jsonw_string(&w, "pid", name);
	if (w.failed || coop_buf_append(&text, ",\"data\":\"", sizeof ",\"data\":\"") < 0) {
		coop_buf_clear(&text);
		return NULL;
	}
	return (char *)text.data;
}

static size_t write_head(const struct coop_chunk *chunk, char head[HEAD_MAX])
{
	const char *type = chunk->stream == COOP_STDOUT ? "stdout"
			   : chunk->stream == COOP_PTY  ? "pty"
							: "stderr";

	return (size_t)snprintf(head, HEAD_MAX, "{\"type\":\"%s\",\"cursor\":%llu", type,
				(unsigned long long)chunk->cursor);
}

static size_t payload_size(const char *common, const struct coop_chunk *chunk, size_t head)
{
	return head + strlen(common) + coop_base64_length(chunk->size) + 2;
}

static size_t event_size(const char *common, const struct coop_chunk *chunk)
{
	uint8_t header[COOP_WS_HEADER_MAX];
	char head[HEAD_MAX];
	size_t size = payload_size(common, chunk, write_head(chunk, head));

	return coop_ws_header(header, size) + size;
}

static uint8_t *write_event(const char *common, const struct coop_chunk *chunk, uint8_t *at)
{
	char head[HEAD_MAX];
	size_t size = write_head(chunk, head);

	at += coop_ws_header(at, payload_size(common, chunk, size));
	at = mempcpy(at, head, size);
	at = mempcpy(at, common, strlen(common));
	coop_base64_encode(chunk->data, chunk->size, (char *)at);
	at += coop_base64_length(chunk->size);
	return mempcpy(at, "\"}", 2);
}

/* Frames say how long they are: 126 and 127 announce a longer number behind the two bytes of the
 * header. */
static size_t event_length(const uint8_t *frame)
{
	size_t size = frame[1] & 0x7fu, count = size == 126 ? 2 : size == 127 ? 8 : 0;

	if (!count)
		return 2 + size;
	size = 0;
	for (size_t i = 0; i < count; i++)
		size = size << 8 | frame[2 + i];
	return 2 + count + size;
}

static size_t write_gap(char ret[COOP_FEED_GAP_MAX], uint64_t from, uint64_t to, uint64_t bytes)
{
	char lost[24] = "null";

	if (bytes != COOP_FEED_UNKNOWN)
		(void)snprintf(lost, sizeof lost, "%llu", (unsigned long long)bytes);
	return (size_t)snprintf(
		ret, COOP_FEED_GAP_MAX,
		"{\"type\":\"gap\",\"from_cursor\":%llu,\"to_cursor\":%llu,\"bytes\":%s}",
		(unsigned long long)from, (unsigned long long)to, lost);
}

static int view_end(struct coop_process_view *view, enum coop_feed_fate fate, const json_t *record)
{
	switch (fate) {
	case COOP_FEED_TOLD:
		return coop_process_view_read(view, record) && view->ended ? 0 : -ENODATA;
	case COOP_FEED_UNTOLD:
		*view = (struct coop_process_view){
			.ended = true,
			.status = "failed",
			.exit_code = COOP_VIEW_LOST_CODE,
			.error = "how it ended is not known: its record is gone",
		};
		return 0;
	case COOP_FEED_REMOVED:
		break;
	}
	*view = (struct coop_process_view){
		.ended = true,
		.status = "killed",
		.exit_code = -SIGKILL,
		.error = "killed: its sandbox was removed",
	};
	return 0;
}

static int write_exit(struct coop_buf *ret, const char *name, enum coop_feed_fate fate,
		      const json_t *record, uint64_t cursor)
{
	struct coop_process_view view;
	struct coop_jsonw w = {.out = ret};
	int r = view_end(&view, fate, record);

	if (r < 0)
		return r;
	coop_jsonw_begin(&w, NULL);
	coop_process_view_write_exit(&view, &w, name, cursor);
	coop_jsonw_end(&w);
	if (!w.failed)
		return 0;
	coop_buf_clear(ret);
	return -ENOMEM;
}

/* Clients that know nothing of gaps show the exit's `error`. */
static char *lossy_exit(const struct coop_buf *text, uint64_t bytes, bool more)
{
	json_t *exit = json_loadb((const char *)coop_buf_front(text), coop_buf_size(text), 0, NULL);
	const char *error = json_string_value(json_object_get(exit, "error"));
	char lost[64] = "an unknown number of";

	if (bytes)
		(void)snprintf(lost, sizeof lost, "%s%llu", more ? "more than " : "",
			       (unsigned long long)bytes);
	int r = json_object_set_new(exit, "error",
				    json_sprintf("%s%s%s bytes of output were lost",
						 error ? error : "", error ? "; " : "", lost));
	char *dumped = r == 0 ? json_dumps(exit, JSON_COMPACT) : NULL;
	json_decref(exit);
	return dumped;
}

static void send_events(struct coop_feed_sink *sink, struct coop_http_shared *block, size_t from,
			size_t to)
{
	coop_ws_send_shared(ws_of(sink), block, from, to);
}

static void say(struct coop_feed_sink *sink, const char *text, size_t size)
{
	coop_ws_send_text(ws_of(sink), text, size);
}

static size_t pending(const struct coop_feed_sink *sink)
{
	return coop_ws_pending((const struct coop_ws *)sink);
}

static void expect_little(struct coop_feed_sink *sink)
{
	coop_ws_expect_little(ws_of(sink));
}

static void close_sink(struct coop_feed_sink *sink, enum coop_feed_close why, const char *reason)
{
	static const unsigned codes[] = {
		[COOP_FEED_EXITED] = COOP_WS_NORMAL,
		[COOP_FEED_DENIED] = COOP_WS_POLICY,
		[COOP_FEED_UNREACHABLE] = COOP_WS_RESTART,
	};

	if (why == COOP_FEED_EXITED)
		coop_ws_close_after(ws_of(sink), CLOSE_AFTER_MS, codes[why], reason);
	else
		coop_ws_close(ws_of(sink), codes[why], reason);
}

const struct coop_feed_dialect coop_v1_feed_frames = {
	.common = make_common,
	.event_size = event_size,
	.event_write = write_event,
	.event_length = event_length,
	.gap = write_gap,
	.exit = write_exit,
	.lossy_exit = lossy_exit,
	.send = send_events,
	.say = say,
	.pending = pending,
	.expect_little = expect_little,
	.close = close_sink,
};
