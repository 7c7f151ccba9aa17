/* Feeds against a keeper and clients that behave at random: whoever reads gets each event once, in
 * order, or in exactly one gap with its true size, and then the exit; however slow it is, and
 * whatever becomes of the link. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/later.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "doors/http/net/exchange.h"
#include "doors/http/net/net.h"
#include "doors/http/net/ws.h"
#include "doors/http/runtime/feed_state.h"
#include "doors/http/runtime/v1/feed_frames.h"
#include "doors/http/users/user.h"
#include "feed_model.h"

/* Not reached: only texts of refusals are needed. */
void coop_http_refuse(struct coop_http_exchange *exchange, unsigned status, const char *code,
		      const char *format, ...)
{
	(void)exchange;
	(void)status;
	(void)code;
	(void)format;
	abort();
}

#define CLIENTS_MAX 21
#define CALLS_MAX 128

struct coop_call {
	char op[16];
	uint64_t at, max; /* the event that it is at */
	struct coop_handler handler;
	bool used, dropped;
};
static struct coop_call calls[CALLS_MAX];

struct coop_user {
	int refs;
	struct coop_user_extra *feeds;
};
static struct coop_user the_user;
static struct coop_http_net net;

static void run_turn(void)
{
	(void)coop_laters_run(&net.laters);
	(void)uv_run(net.loop, UV_RUN_NOWAIT);
}

struct coop_user *coop_user_ref(struct coop_user *user)
{
	user->refs++;
	return user;
}

void coop_user_unref(struct coop_user *user)
{
	if (user)
		user->refs--;
}

struct coop_http_net *coop_user_net(const struct coop_user *user)
{
	assert_ptr_equal(user, &the_user);
	return &net;
}

struct coop_user_extra *coop_user_extra(const struct coop_user *user,
					const struct coop_user_kind *kind)
{
	assert_true(!user->feeds || user->feeds->kind == kind);
	return user->feeds;
}

void coop_user_hang(struct coop_user *user, const struct coop_user_kind *kind,
		    struct coop_user_extra *extra)
{
	assert_null(user->feeds);
	extra->kind = kind;
	user->feeds = extra;
}

struct coop_call *coop_user_call(struct coop_user *user, const char *op, json_t *args,
				 const void *data, size_t size, const struct coop_handler *handler)
{
	const char *start = !strcmp(op, "follow") ? "since" : "cursor";

	(void)user;
	(void)data;
	(void)size;
	if (chance(2000) == 0) {
		json_decref(args);
		return NULL;
	}
	for (size_t i = 0; i < CALLS_MAX; i++) {
		if (calls[i].used)
			continue;
		calls[i] = (struct coop_call){
			.at = (uint64_t)json_integer_value(json_object_get(args, start)),
			.max = (uint64_t)json_integer_value(json_object_get(args, "max")),
			.handler = *handler,
			.used = true,
		};
		(void)strncat(calls[i].op, op, sizeof calls[i].op - 1);
		json_decref(args);
		return &calls[i];
	}
	fail_msg("too many calls");
	return NULL;
}

void coop_user_drop(struct coop_call *call)
{
	if (call)
		call->dropped = true;
}

static void finish(struct coop_call *call, const char *code, json_t *result)
{
	struct coop_error error = {0};
	char *text = result ? json_dumps(result, 0) : NULL;

	if (code)
		(void)strncat(error.code, code, sizeof error.code - 1);
	struct coop_handler handler = call->handler;
	bool dropped = call->dropped;
	call->used = false;
	if (!dropped)
		handler.done(handler.user, 0, code ? -1 : 0, text, code ? &error : NULL);
	free(text);
	json_decref(result);
}

static void send_event(struct coop_call *call, uint64_t n)
{
	uint8_t data[32768];

	for (size_t i = 0; i < model.size[n]; i++)
		data[i] = byte_of(n, i);
	struct coop_chunk chunk = {.stream = model.stream[n],
				   .offset = model.offset[n],
				   .cursor = n,
				   .data = data,
				   .size = model.size[n]};
	if (!call->dropped)
		call->handler.data(call->handler.user, 0, &chunk);
}

static void follow_some(struct coop_call *call)
{
	char text[200];

	for (unsigned left = chance(60); left && call->at < model.next && !call->dropped; left--) {
		uint64_t to = call->at;
		while (to < model.next && lost(to))
			to++;
		if (to > call->at) {
			(void)snprintf(text, sizeof text,
				       "{\"id\":1,\"event\":\"gap\",\"from_cursor\":%llu,"
				       "\"to_cursor\":%llu,\"bytes\":null,\"bytes_before\":%llu}",
				       (unsigned long long)call->at, (unsigned long long)to,
				       (unsigned long long)model.before[to]);
			call->at = to;
			call->handler.event(call->handler.user, 0, text);
		} else {
			send_event(call, call->at++);
		}
	}
	if (!call->dropped && model.ended && call->at >= model.next)
		finish(call, NULL,
		       json_pack("{s:s,s:I,s:{s:s,s:s,s:{s:I,s:I,s:I},s:{s:i}}}", "reason", "exit",
				 "cursor", (json_int_t)model.next, "process", "id", "psh-1-1",
				 "state", "exited", "events", "first", (json_int_t)model.first,
				 "next", (json_int_t)model.next + 1, "exit", (json_int_t)model.next,
				 "exit", "code", 3));
}

static void read_some(struct coop_call *call)
{
	uint64_t next = call->at < model.next ? call->at : model.next, begin, bytes = 0,
		 dropped = 0;
	json_t *gaps = json_array();
	bool any = false;

	begin = next;
	for (; next < model.next; next++) {
		uint64_t from = next;
		while (next < model.next && lost(next)) {
			if (next >= model.first)
				dropped += model.size[next];
			next++;
		}
		if (next > from && any)
			json_array_append_new(
				gaps,
				json_pack("{s:I,s:I,s:I}", "from_cursor", (json_int_t)from,
					  "to_cursor", (json_int_t)next, "bytes",
					  (json_int_t)(model.before[next] - model.before[from])));
		if (!any)
			begin = next;
		if (next == model.next || (any && bytes + model.size[next] > call->max))
			break;
		any = true;
		bytes += model.size[next];
		send_event(call, next);
	}
	finish(call, NULL,
	       json_pack("{s:I,s:I,s:I,s:I,s:I,s:o}", "cursor", (json_int_t)begin, "bytes_before",
			 (json_int_t)model.before[begin], "next", (json_int_t)next, "first",
			 (json_int_t)model.first, "bytes_dropped", (json_int_t)dropped, "gaps",
			 gaps));
}

static void keeper_turn(bool failing)
{
	for (size_t i = 0; i < CALLS_MAX; i++) {
		struct coop_call *call = &calls[i];
		if (!call->used)
			continue;
		if (call->dropped)
			finish(call, "cancelled", NULL);
		else if (failing && chance(400) == 0)
			finish(call, "unreachable", NULL);
		else if (!strcmp(call->op, "follow"))
			follow_some(call);
		else if (chance(3) == 0)
			read_some(call);
	}
}

struct coop_ws {
	struct coop_buf queue;
	struct coop_feed_reader *reader;
	uint64_t next, since;
	bool open, exited, over, future;
	unsigned code, gaps;
};
static struct coop_ws clients[CLIENTS_MAX];

static void leave(struct coop_ws *ws)
{
	ws->over = true;
	coop_feed_reader_end(ws->reader);
	ws->reader = NULL;
}

size_t coop_ws_header(uint8_t ret[COOP_WS_HEADER_MAX], size_t size)
{
	ret[0] = 0x81;
	if (size < 126) {
		ret[1] = (uint8_t)size;
		return 2;
	}
	assert_true(size < 65536);
	ret[1] = 126;
	ret[2] = (uint8_t)(size >> 8);
	ret[3] = (uint8_t)size;
	return 4;
}

static void queue(struct coop_ws *ws, const void *data, size_t size)
{
	if (!ws->over)
		assert_int_equal(coop_buf_append(&ws->queue, data, size), 0);
}

static void maybe_leave(struct coop_ws *ws)
{
	if (!ws->over && ws->reader && chance(20000) == 0)
		leave(ws);
}

void coop_ws_send_text(struct coop_ws *ws, const char *text, size_t size)
{
	uint8_t header[COOP_WS_HEADER_MAX];

	queue(ws, header, coop_ws_header(header, size));
	queue(ws, text, size);
	maybe_leave(ws);
}

void coop_ws_send_shared(struct coop_ws *ws, struct coop_http_shared *block, size_t from, size_t to)
{
	assert_true(from < to && to <= block->size);
	queue(ws, block->data + from, to - from);
	maybe_leave(ws);
}

size_t coop_ws_pending(const struct coop_ws *ws)
{
	return coop_buf_size(&ws->queue);
}

void coop_ws_expect_little(struct coop_ws *ws)
{
	(void)ws;
}

void coop_ws_close(struct coop_ws *ws, unsigned code, const char *reason)
{
	(void)reason;
	ws->code = code;
}

void coop_ws_close_after(struct coop_ws *ws, unsigned ms, unsigned code, const char *reason)
{
	(void)ms;
	(void)reason;
	ws->code = code;
}

/* {"type":"stdout","cursor":7,"pid":"psh-1-1","data":"…"}; read by hand, as there are many. */
static void check_output(struct coop_ws *ws, const char *frame, size_t length)
{
	unsigned long long cursor;
	char type[8], pid[8];
	uint8_t data[32768 + 3];
	size_t size;
	int head = 0;

	assert_int_equal(sscanf(frame,
				"{\"type\":\"%7[a-z]\",\"cursor\":%llu,\"pid\":\"%7[a-z0-9-]\","
				"\"data\":\"%n",
				type, &cursor, pid, &head),
			 3);
	assert_string_equal(pid, "psh-1-1");
	assert_memory_equal(frame + length - 2, "\"}", 2);
	assert_int_equal(cursor, ws->next);
	assert_int_equal(coop_base64_decode(frame + head, length - (size_t)head - 2, data, &size),
			 0);
	assert_int_equal(size, model.size[cursor]);
	for (size_t i = 0; i < size; i++) {
		if (data[i] != byte_of(cursor, i))
			fail_msg("byte %zu of event %llu is wrong", i, cursor);
	}
	assert_string_equal(type, model.stream[cursor] == 1 ? "stdout" : "stderr");
	ws->next++;
}

static void check_gap(struct coop_ws *ws, const json_t *frame)
{
	uint64_t from = (uint64_t)json_integer_value(json_object_get(frame, "from_cursor"));
	uint64_t to = (uint64_t)json_integer_value(json_object_get(frame, "to_cursor"));
	const json_t *bytes = json_object_get(frame, "bytes");

	assert_int_equal(from, ws->next);
	assert_true(to > from && to <= model.next);
	/* Whoever began in the middle may not know what was lost before its first event. */
	if (json_is_integer(bytes))
		assert_int_equal(json_integer_value(bytes), model.before[to] - model.before[from]);
	else
		assert_true(ws->since && from == ws->since);
	ws->next = to;
	ws->gaps++;
}

static void check_frame(struct coop_ws *ws, const char *text, size_t size)
{
	assert_false(ws->exited);
	if (!strncmp(text, "{\"type\":\"std", 12)) {
		check_output(ws, text, size);
		return;
	}
	json_t *frame = json_loadb(text, size, 0, NULL);
	const char *type = json_string_value(json_object_get(frame, "type"));
	uint64_t cursor = (uint64_t)json_integer_value(json_object_get(frame, "cursor"));
	assert_non_null(type);
	if (!strcmp(type, "gap")) {
		check_gap(ws, frame);
	} else {
		assert_string_equal(type, "exit");
		assert_int_equal(cursor, model.next);
		assert_true(ws->next == cursor || ws->since > cursor);
		ws->exited = true;
	}
	json_decref(frame);
}

/* Takes frames out of the queue, up to so many bytes. */
static void drain(struct coop_ws *ws, size_t most)
{
	size_t before = coop_buf_size(&ws->queue);

	while (coop_buf_size(&ws->queue) && before - coop_buf_size(&ws->queue) < most) {
		const uint8_t *at = coop_buf_front(&ws->queue);
		size_t head = at[1] == 126 ? 4 : 2;
		size_t size = at[1] == 126 ? (size_t)at[2] << 8 | at[3] : at[1];
		assert_int_equal(at[0], 0x81);
		assert_true(coop_buf_size(&ws->queue) >= head + size);
		check_frame(ws, (const char *)at + head, size);
		coop_buf_consume(&ws->queue, head + size);
	}
	if (ws->reader && before > coop_buf_size(&ws->queue) &&
	    coop_buf_size(&ws->queue) < COOP_WS_LOW)
		coop_feed_reader_writable(ws->reader);
}

static void attach(struct coop_ws *ws)
{
	struct coop_feed *feed =
		coop_feed_get(&the_user, &coop_v1_feed_frames, "psh-1-1", "psh-1-1");

	assert_non_null(feed);
	*ws = (struct coop_ws){.open = true};
	if (chance(3))
		ws->since = chance(2) ? chance((unsigned)model.next + 50) : model.next;
	ws->next = ws->since;
	ws->reader = coop_feed_read(feed, coop_v1_sink(ws), ws->since);
	assert_non_null(ws->reader);
	coop_feed_unref(feed);
}

static void clients_turn(unsigned most)
{
	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		struct coop_ws *ws = &clients[i];
		if (!ws->open && i < most && chance(50) == 0)
			attach(ws);
		/* Every third is slow, and one in seven reads nothing for most of the time. */
		if (ws->open && !ws->over && (i % 7 || chance(300) == 0) &&
		    (i % 3 || chance(10) == 0))
			drain(ws, i % 3 ? SIZE_MAX : 30000);
	}
}

static bool all_done(void)
{
	bool done = true;

	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		struct coop_ws *ws = &clients[i];
		if (ws->open && !ws->over && !ws->code)
			done = false;
	}
	return done;
}

static void play(unsigned number, unsigned events, bool failing)
{
	unsigned gaps = 0;

	seed = number;
	memset(&model, 0, sizeof model);
	memset(clients, 0, sizeof clients);
	while (!all_done() || !model.ended) {
		if (model.next < events)
			produce(chance(8) ? chance(20) : chance(400));
		model.ended = model.ended || model.next >= events;
		clients_turn(model.ended ? 0 : CLIENTS_MAX);
		keeper_turn(failing);
		run_turn();
		struct coop_feed *feed = NULL;
		for (size_t i = 0; i < CLIENTS_MAX && !feed; i++)
			feed = clients[i].reader ? clients[i].reader->feed : NULL;
		/* What is kept for readers has a bound. */
		if (feed)
			assert_true(feed->window.size <= 2 * COOP_FEED_WINDOW + (1u << 20));
	}
	for (size_t i = 0; i < CLIENTS_MAX; i++) {
		struct coop_ws *ws = &clients[i];
		if (!ws->open)
			continue;
		if (!ws->over) {
			drain(ws, SIZE_MAX);
			assert_true(ws->exited);
			assert_int_equal(ws->code, COOP_WS_NORMAL);
			leave(ws);
		}
		gaps += ws->gaps;
		coop_buf_clear(&ws->queue);
	}
	for (unsigned i = 0; i < 10; i++) {
		keeper_turn(false);
		run_turn();
	}
	assert_int_equal(net.counts.subscribers, 0);
	assert_int_equal(net.counts.feeds, 0);
	assert_int_equal(the_user.refs, 0);
	assert_true(net.counts.gaps >= gaps);
}

static void every_event_once(void **state)
{
	(void)state;
	for (unsigned i = 1; i <= 12; i++)
		play(i, 200 + i * 300, false);
}

static void lost_links_lose_nothing(void **state)
{
	(void)state;
	for (unsigned i = 100; i < 103; i++)
		play(i, 600, true);
}

static void slow_readers_are_told_of_gaps(void **state)
{
	(void)state;
	net.counts.gaps = 0;
	play(1000, 6000, false);
	assert_true(net.counts.gaps > 0);
}

/* A keeper that was killed leaves a record without a count of events. */
static void exit_is_the_last_event(void **state)
{
	(void)state;
	seed = 1;
	memset(&model, 0, sizeof model);
	attach(&clients[0]);
	assert_int_equal(clients[0].since, 0);
	produce(10);
	while (clients[0].next < 10) {
		keeper_turn(false);
		run_turn();
		drain(&clients[0], SIZE_MAX);
	}
	finish(&calls[0], NULL,
	       json_pack("{s:i,s:{s:s,s:s,s:{s:i}}}", "cursor", 0, "process", "id", "psh-1-1",
			 "state", "exited", "events", "exit", 0));
	run_turn();
	drain(&clients[0], SIZE_MAX);
	assert_true(clients[0].exited);
	leave(&clients[0]);
	coop_buf_clear(&clients[0].queue);
}

static int set_up(void **state)
{
	(void)state;
	net.loop = uv_default_loop();
	coop_laters_init(&net.laters);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (the_user.feeds)
		the_user.feeds->kind->release(the_user.feeds);
	(void)uv_run(net.loop, UV_RUN_DEFAULT);
	return uv_loop_close(net.loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exit_is_the_last_event),
		cmocka_unit_test(every_event_once),
		cmocka_unit_test(lost_links_lose_nothing),
		cmocka_unit_test(slow_readers_are_told_of_gaps),
	};

	coop_mem_init();
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
