#include "doors/http/runtime/v1/socket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json/jsonw.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "base/text/utf8.h"
#include "doors/http/net/net.h"
#include "doors/http/net/target.h"
#include "doors/http/net/ws.h"
#include "doors/http/runtime/ask.h"
#include "doors/http/runtime/feed.h"
#include "doors/http/runtime/inbox.h"
#include "doors/http/runtime/v1/feed_frames.h"
#include "doors/http/runtime/v1/input_frame.h"
#include "doors/http/runtime/v1/input_messages.h"
#include "doors/http/runtime/v1/process_ask.h"
#include "doors/http/runtime/v1/refusal.h"
#include "doors/http/runtime/v1/socket_state.h"
#include "doors/http/runtime/v1/view.h"
#include "doors/http/users/user.h"

#define CURSOR_MAX ((1ull << 53) - 1)
#define CLOSE_AFTER_MS 2000u
/* Messages other than input. A parser at work stops everybody else. */
#define PARSED_MAX (4u << 20)
/* Of a reason that is shown as output, as the keeper's notes. */
#define NOTE_MAX 512u

static void free_socket(struct coop_socket *socket)
{
	struct coop_user *user = COOP_TAKE_PTR(socket->user);

	coop_inbox_drop(COOP_TAKE_PTR(socket->inbox));
	json_decref(socket->start);
	socket->start = NULL;
	uv_close((uv_handle_t *)&socket->timer, coop_http_free_owner);
	coop_user_unref(user);
}

void coop_socket_hold(struct coop_socket *socket)
{
	socket->busy++;
}

void coop_socket_let_go(struct coop_socket *socket)
{
	socket->busy--;
	if (!socket->busy && !socket->ws && !socket->starting)
		free_socket(socket);
}

void coop_socket_no_memory(struct coop_socket *socket)
{
	socket->state = COOP_SOCKET_REFUSED;
	if (socket->ws)
		coop_ws_close(socket->ws, COOP_WS_INTERNAL, "out of memory");
}

/* Without a number: it is no event, and clients would count it. */
static void say_started(struct coop_socket *socket, const struct coop_process_view *view)
{
	struct coop_buf text = {0};
	struct coop_jsonw w = {.out = &text};

	coop_jsonw_begin(&w, NULL);
	coop_jsonw_string(&w, "type", "started");
	coop_jsonw_string(&w, "pid", view->name);
	coop_process_view_write(view, &w, "process");
	coop_jsonw_end(&w);
	coop_ws_send_json(socket->ws, &text, &w);
}

/* Hands over to the feed. The client may go at any moment of this. */
static void connect_process(struct coop_socket *socket, const struct coop_process_view *view,
			    uint64_t since, const json_t *hold)
{
	struct coop_feed *feed =
		coop_feed_get(socket->user, &coop_v1_feed_frames, view->id, view->name);

	/* The keeper is asked first: it works while we write. Nothing comes of it before the client
	 * has been told. */
	if (feed && socket->ws)
		socket->reader = coop_feed_read(feed, coop_v1_sink(socket->ws), since);
	if (socket->reader)
		coop_feed_reader_hold(socket->reader, hold);
	else
		coop_feed_hold_give_up(socket->user, view->id, hold);
	say_started(socket, view);
	if (socket->ws && !socket->reader)
		coop_ws_close(socket->ws, COOP_WS_INTERNAL, "out of memory");
	if (feed) {
		struct coop_inbox *inbox = socket->inbox;
		socket->connected = true;
		if (!socket->ws)
			socket->inbox = NULL; /* it sees to itself now */
		coop_inbox_open(inbox, feed);
	}
	coop_feed_unref(feed);
}

void coop_socket_started(struct coop_socket *socket, const struct coop_process_view *view,
			 uint64_t since, const json_t *hold)
{
	socket->state = COOP_SOCKET_LIVE;
	connect_process(socket, view, since, hold);
}

/* The reason as output of coop's own, as the keeper's notes are. */
static void say_reason(struct coop_socket *socket, const struct coop_process_view *view)
{
	struct coop_buf text = {0};
	struct coop_jsonw w = {.out = &text};
	char line[NOTE_MAX + 1], data[NOTE_MAX * 2];
	int size = snprintf(line, sizeof line, "coop: %s", view->error);

	if (size >= (int)NOTE_MAX)
		size = (int)(NOTE_MAX - 1 -
			     coop_utf8_unfinished((const uint8_t *)line + NOTE_MAX - 5, 4));
	/* It may be shown on a terminal, and it is one line. */
	for (char *at = line; at < line + size; at++) {
		if ((uint8_t)*at < 0x20 || *at == 0x7f)
			*at = '?';
	}
	line[size++] = '\n';
	coop_base64_encode(line, (size_t)size, data);
	data[coop_base64_length((size_t)size)] = 0;
	coop_jsonw_begin(&w, NULL);
	coop_jsonw_string(&w, "type", "stderr");
	coop_jsonw_uint(&w, "cursor", 0);
	coop_jsonw_string(&w, "pid", view->name);
	coop_jsonw_string(&w, "data", data);
	coop_jsonw_end(&w);
	coop_ws_send_json(socket->ws, &text, &w);
}

void coop_socket_failed(struct coop_socket *socket, const struct coop_process_view *view,
			const char *code)
{
	struct coop_buf text = {0};
	struct coop_jsonw w = {.out = &text};

	socket->state = COOP_SOCKET_REFUSED;
	say_started(socket, view);
	say_reason(socket, view);
	coop_jsonw_begin(&w, NULL);
	coop_process_view_write_exit(view, &w, view->name, view->exit_cursor);
	coop_jsonw_string(&w, "code", code);
	coop_jsonw_end(&w);
	coop_ws_send_json(socket->ws, &text, &w);
	if (socket->ws)
		coop_ws_close_after(socket->ws, CLOSE_AFTER_MS, COOP_WS_NORMAL, "");
}

/* What breaks the protocol itself. */
static void refuse_message(struct coop_socket *socket, const char *message)
{
	struct coop_buf text = {0};
	struct coop_jsonw w = {.out = &text};

	socket->state = COOP_SOCKET_REFUSED;
	coop_jsonw_begin(&w, NULL);
	coop_jsonw_string(&w, "type", "error");
	coop_jsonw_string(&w, "code", "bad_frame");
	coop_jsonw_string(&w, "message", message);
	coop_jsonw_end(&w);
	coop_ws_send_json(socket->ws, &text, &w);
	if (socket->ws)
		coop_ws_close(socket->ws, COOP_WS_POLICY, "bad_frame");
}

static void take_first(struct coop_socket *socket, const char *type, const json_t *message)
{
	if (!type || strcmp(type, "start") != 0)
		refuse_message(socket, "the first message must be a start message");
	else
		coop_socket_spawn(socket, message);
}

/* A message that cannot be read may have been input, which must not be lost silently: the client is
 * told, but what it reads goes on. */
static void take_further(struct coop_socket *socket, const char *type, const json_t *message)
{
	if (type && !strcmp(type, "start"))
		refuse_message(socket, "there has been a start message already");
	else if (type)
		coop_v1_input_message(socket->inbox, type, message);
	else
		coop_inbox_add(socket->inbox, COOP_INBOX_UNREAD);
}

static void take_message(struct coop_socket *socket, const char *data, size_t size)
{
	(void)uv_timer_stop(&socket->timer); /* of a first message */
	json_t *message = size <= PARSED_MAX ? json_loadb(data, size, JSON_ALLOW_NUL, NULL) : NULL;
	const char *type = json_string_value(json_object_get(message, "type"));

	if (socket->state != COOP_SOCKET_EMPTY)
		take_further(socket, type, message);
	else if (size > PARSED_MAX)
		coop_socket_refuse(socket, "invalid_argument", "the start message is too large");
	else
		take_first(socket, type, message);
	json_decref(message);
}

static void on_message(struct coop_ws *ws, bool text, const char *data, size_t size)
{
	struct coop_socket *socket = coop_ws_context(ws);
	const char *input;
	size_t length;

	if (socket->state == COOP_SOCKET_REFUSED)
		return;
	coop_socket_hold(socket);
	if (socket->state != COOP_SOCKET_EMPTY && text &&
	    coop_frame_stdin(data, size, &input, &length))
		coop_inbox_base64(socket->inbox, input, length);
	else
		take_message(socket, data, text ? size : 0);
	coop_socket_let_go(socket);
}

static void on_writable(struct coop_ws *ws)
{
	struct coop_socket *socket = coop_ws_context(ws);

	if (socket->reader)
		coop_feed_reader_writable(socket->reader);
}

static void on_taking(struct coop_ws *ws)
{
	const struct coop_socket *socket = coop_ws_context(ws);

	if (socket->reader)
		coop_feed_reader_taking(socket->reader);
}

static void on_over(struct coop_ws *ws)
{
	struct coop_socket *socket = coop_ws_context(ws);
	struct coop_inbox *inbox = socket->inbox;

	socket->ws = NULL;
	coop_feed_reader_end(COOP_TAKE_PTR(socket->reader));
	if (socket->connected)
		socket->inbox = NULL; /* it sees to itself now */
	if (inbox && coop_ws_lost_message(ws))
		coop_inbox_add(inbox, COOP_INBOX_LOST);
	if (inbox)
		coop_inbox_leave(inbox);
	/* A start that has been sent is carried out, and so is what came behind it. */
	if (!socket->busy && !socket->starting)
		free_socket(socket);
}

static const struct coop_ws_behaviour behaviour = {
	.message = on_message, .writable = on_writable, .taking = on_taking, .over = on_over};

/* The WebSocket of an upgrade, held, with nothing said yet. NULL: the client is gone or has been
 * refused. */
static struct coop_socket *open_socket(struct coop_http_exchange *exchange,
				       enum coop_socket_state state)
{
	struct coop_socket *socket = coop_mem_zalloc(sizeof *socket);

	if (!socket) {
		coop_http_refuse(exchange, 503, "sandbox_overloaded", "out of memory");
		return NULL;
	}
	socket->user = coop_user_ref(exchange->user);
	socket->state = state;
	(void)uv_timer_init(exchange->net->loop, &socket->timer);
	socket->timer.data = socket;
	coop_socket_hold(socket);
	socket->ws = coop_http_upgrade(exchange, &behaviour, socket);
	if (socket->ws)
		socket->inbox = coop_inbox_new(socket->user, &coop_v1_input_client, socket->ws);
	if (socket->inbox)
		return socket;
	if (socket->ws)
		coop_ws_close(socket->ws, COOP_WS_INTERNAL, "out of memory");
	coop_socket_let_go(socket);
	return NULL;
}

static void on_no_start(uv_timer_t *timer)
{
	struct coop_socket *socket = timer->data;

	socket->state = COOP_SOCKET_REFUSED;
	if (socket->ws)
		coop_ws_close(socket->ws, COOP_WS_POLICY, "no start message");
}

void coop_runtime_start(struct coop_http_exchange *exchange)
{
	struct coop_socket *socket = open_socket(exchange, COOP_SOCKET_EMPTY);

	if (!socket)
		return;
	(void)uv_timer_start(&socket->timer, on_no_start, COOP_START_MS, 0);
	coop_socket_let_go(socket);
}

struct attach {
	struct coop_ask ask;
	uint64_t since;
	bool lossless;
	json_t *record; /* until the process waits for the client */
};

static void clear_attach(struct coop_ask *ask)
{
	json_decref(((struct attach *)ask)->record);
}

/* From here on the exchange is over, and `ask` with it. */
static void attach_to(struct coop_ask *ask, const struct coop_process_view *view,
		      const json_t *hold)
{
	uint64_t since = ((struct attach *)ask)->since;
	struct coop_user *user = coop_user_ref(ask->exchange->user);
	struct coop_socket *socket = open_socket(ask->exchange, COOP_SOCKET_LIVE);

	if (socket) {
		coop_socket_started(socket, view, since, hold);
		coop_socket_let_go(socket);
	} else {
		coop_feed_hold_give_up(user, view->id, hold);
	}
	coop_user_unref(user);
}

static void on_held(struct coop_ask *ask, const json_t *result)
{
	json_t *record = json_incref(((struct attach *)ask)->record);
	struct coop_process_view view;

	if (coop_process_view_read(&view, record))
		attach_to(ask, &view, json_object_get(result, "hold"));
	json_decref(record);
}

/* The process is there, and this one may look at it: it is told that no more is to be had. */
static void on_not_held(struct coop_ask *ask, const struct coop_error *error)
{
	if (!strcmp(error->code, "not_owner"))
		coop_http_refuse(ask->exchange, 403, "forbidden",
				 "lossless is for the owner of the process");
	else
		coop_refuse_with(ask->exchange, error);
}

static void on_status(struct coop_ask *ask, const json_t *result)
{
	struct attach *attach = (struct attach *)ask;
	struct coop_process_view view;

	if (!coop_v1_ask_view(ask, result, &view))
		return;
	if (!attach->lossless) {
		attach_to(ask, &view, NULL);
		return;
	}
	attach->record = json_incref(json_object_get(result, "process"));
	ask->failed = on_not_held;
	coop_ask(ask, "hold",
		 json_pack("{s:s,s:I}", "id", view.id, "cursor", (json_int_t)attach->since),
		 on_held);
}

void coop_runtime_connect(struct coop_http_exchange *exchange)
{
	bool lossless = false;
	uint64_t since = 0;

	if (coop_query_uint(exchange->query, "since", CURSOR_MAX, &since) < 0) {
		coop_http_refuse(exchange, 400, "invalid_argument",
				 "since must be the number of an event, 0 or more");
		return;
	}
	if (coop_query_bool(exchange->query, "lossless", &lossless) < 0) {
		coop_http_refuse(exchange, 400, "invalid_argument",
				 "lossless must be true or false");
		return;
	}
	struct attach *attach = coop_ask_new(exchange, sizeof *attach);
	if (!attach)
		return;
	attach->ask.clear = clear_attach;
	attach->since = since;
	attach->lossless = lossless;
	coop_v1_ask_process(&attach->ask, on_status);
}
