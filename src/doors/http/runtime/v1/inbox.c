#include "doors/http/runtime/v1/inbox.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json/jsonw.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "coop.h"
#include "doors/http/net/net.h"
#include "doors/http/net/ws.h"
#include "doors/http/runtime/v1/view.h"
#include "doors/http/users/user.h"

enum kind { STDIN, NO_STDIN, CLOSE_STDIN, RESIZE, SIGNAL, REFUSE, LOST };

struct item {
	struct item *next;
	enum kind kind;
	int cols, rows, signal;
	size_t size, done; /* of stdin: what the process has got */
	uint8_t bytes[];
};

struct coop_inbox {
	struct coop_user *user; /* held */
	struct coop_ws *ws;     /* NULL: gone */
	struct coop_feed *feed; /* held; NULL: there is no process yet */
	struct item *first, **last;
	size_t bytes, count;
	bool paused, running;
	bool noted;                  /* that input did not get through */
	struct coop_user_call *call; /* of the first item */
	struct coop_feed_turn turn;
	uv_timer_t timer; /* runs once the WebSocket has gone */
};

static void go_on(struct coop_inbox *inbox);

static void on_turn(struct coop_feed_turn *turn)
{
	go_on((struct coop_inbox *)(void *)((char *)turn - offsetof(struct coop_inbox, turn)));
}

struct coop_inbox *coop_inbox_new(struct coop_user *user, struct coop_ws *ws)
{
	struct coop_inbox *inbox = coop_mem_zalloc(sizeof *inbox);

	if (!inbox)
		return NULL;
	inbox->user = coop_user_ref(user);
	inbox->ws = ws;
	inbox->last = &inbox->first;
	inbox->turn.go = on_turn;
	(void)uv_timer_init(coop_user_net(user)->loop, &inbox->timer);
	inbox->timer.data = inbox;
	return inbox;
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

/* So much of its input waits no more. */
static void less(struct coop_inbox *inbox, size_t bytes)
{
	inbox->bytes -= bytes;
	coop_user_input_less(inbox->user, bytes);
}

/* The process has got so much more of it. */
static void took(struct coop_inbox *inbox, struct item *item, size_t bytes)
{
	item->done += bytes;
	less(inbox, bytes);
}

static void pop(struct coop_inbox *inbox)
{
	struct item *item = inbox->first;

	inbox->first = item->next;
	if (!inbox->first)
		inbox->last = &inbox->first;
	less(inbox, item->size - item->done);
	inbox->count--;
	free(item);
}

static void destroy(struct coop_inbox *inbox)
{
	coop_user_drop(COOP_TAKE_PTR(inbox->call));
	while (inbox->first)
		pop(inbox);
	if (inbox->feed)
		coop_feed_turn_end(inbox->feed, &inbox->turn);
	coop_feed_unref(COOP_TAKE_PTR(inbox->feed));
	struct coop_user *user = COOP_TAKE_PTR(inbox->user);
	uv_close((uv_handle_t *)&inbox->timer, on_closed);
	coop_user_unref(user);
}

static void send_json(struct coop_inbox *inbox, struct coop_buf *text, const struct coop_jsonw *w)
{
	if (!inbox->ws)
		;
	else if (w->failed) /* a client that waits for an answer must not wait for ever */
		coop_ws_close(inbox->ws, COOP_WS_INTERNAL, "out of memory");
	else
		coop_ws_send_text(inbox->ws, (const char *)coop_buf_front(text),
				  coop_buf_size(text));
	coop_buf_clear(text);
}

/* The answer that a client waits for. `written` is told where it is less than was sent. */
static void acknowledge(struct coop_inbox *inbox, const char *type, const struct item *item,
			const char *error)
{
	struct coop_buf text = {0};
	struct coop_jsonw w = {.out = &text};

	coop_jsonw_begin(&w, NULL);
	coop_jsonw_string(&w, "type", type);
	coop_jsonw_string(&w, "pid", coop_feed_name(inbox->feed));
	if (error || item->done < item->size)
		coop_jsonw_uint(&w, "written", item->done);
	if (error)
		coop_jsonw_string(&w, "error", error);
	coop_jsonw_end(&w);
	send_json(inbox, &text, &w);
}

/* Says something among the output, where every client shows it: an `error` would end what they
 * read, and few look at what an acknowledgement says. */
static void note(struct coop_inbox *inbox, const char *text)
{
	static const struct coop_handler nobody_waits;

	if (inbox->noted)
		return;
	inbox->noted = true;
	(void)coop_user_call(inbox->user, "note",
			     json_pack("{s:s,s:s,s:b}", "id", coop_feed_id(inbox->feed), "text",
				       text, "once", 1),
			     NULL, 0, &nobody_waits);
}

/* The process has taken nothing of what the client left behind. */
static void on_left(uv_timer_t *timer)
{
	struct coop_inbox *inbox = timer->data;

	for (const struct item *item = inbox->first; item; item = item->next) {
		if (item->kind != STDIN)
			continue;
		note(inbox, "input was not delivered: its client has gone, and the process does "
			    "not read");
		break;
	}
	destroy(inbox);
}

static void wait_for_progress(struct coop_inbox *inbox)
{
	(void)uv_timer_start(&inbox->timer, on_left, COOP_INBOX_LEFT_MS, 0);
}

/* How much of a write got through although it failed; -1: it never began. */
static json_int_t partly(const struct coop_error *error)
{
	json_t *details = json_loads(error->details, 0, NULL);
	const json_t *written = json_object_get(details, "bytes_written");
	json_int_t count = json_is_integer(written) ? json_integer_value(written) : -1;

	json_decref(details);
	return count;
}

/* A write that was refused. A reader that has gone in the middle of one is no fault of the
 * client's, which hears of the outcome by itself. */
static void explain(struct coop_inbox *inbox, struct item *item, const struct coop_error *error)
{
	json_int_t written = partly(error);

	if (written >= 0) {
		took(inbox, item, (size_t)written);
		acknowledge(inbox, "stdin_ack", item, NULL);
		return;
	}
	acknowledge(inbox, "stdin_ack", item, "stdin_unavailable");
	if (strcmp(error->code, "internal") != 0)
		note(inbox, "input was not delivered: the process takes no input");
	else
		note(inbox, "input was not delivered: it could not be passed on");
}

static bool is_over(const struct coop_error *error)
{
	return !strcmp(error->code, "closed") || !strcmp(error->code, "no_such_process") ||
	       !strcmp(error->code, "not_running");
}

static void finish(struct coop_inbox *inbox, int status, const struct coop_error *error)
{
	struct item *item = inbox->first;

	switch (item->kind) {
	case STDIN:
		if (status < 0)
			explain(inbox, item, error);
		else
			acknowledge(inbox, "stdin_ack", item, NULL);
		break;
	case CLOSE_STDIN:
		acknowledge(inbox, "close_stdin_ack", item,
			    status == 0 || is_over(error) ? NULL : "stdin_unavailable");
		break;
	case RESIZE:
	case SIGNAL:
	case NO_STDIN:
	case REFUSE:
	case LOST:
		break; /* nobody waits for an answer */
	}
	pop(inbox);
	coop_feed_turn_end(inbox->feed, &inbox->turn);
}

static void on_done(void *user, uint64_t request, int status, const char *json,
		    const struct coop_error *error)
{
	struct coop_inbox *inbox = user;
	struct item *item = inbox->first;

	(void)request;
	(void)json;
	inbox->call = NULL;
	if (!inbox->ws)
		wait_for_progress(inbox);
	if (status == 0 && item->kind == STDIN) {
		size_t left = item->size - item->done;
		took(inbox, item, left < COOP_WRITE_STDIN_MAX ? left : COOP_WRITE_STDIN_MAX);
	}
	if (status < 0 || item->kind != STDIN || item->done == item->size) {
		inbox->running = true;
		finish(inbox, status, error);
		inbox->running = false;
	}
	go_on(inbox);
}

static const char *prepare(const struct coop_inbox *inbox, const struct item *item,
			   json_t **ret_args)
{
	const char *id = coop_feed_id(inbox->feed);

	switch (item->kind) {
	case STDIN:
		*ret_args = json_pack("{s:s,s:i}", "id", id, "timeout_ms", -1);
		return "write_stdin";
	case RESIZE:
		*ret_args = json_pack("{s:s,s:i,s:i}", "id", id, "cols", item->cols, "rows",
				      item->rows);
		return "resize";
	case SIGNAL:
		if (item->signal != SIGKILL) {
			*ret_args = json_pack("{s:s,s:i,s:s}", "id", id, "signal", item->signal,
					      "target", "tree");
			return "signal";
		}
		*ret_args = json_pack("{s:s}", "id", id);
		return "kill";
	case CLOSE_STDIN:
	case NO_STDIN:
	case REFUSE:
	case LOST:
		break;
	}
	*ret_args = json_pack("{s:s}", "id", id);
	return "close_stdin";
}

static const char *what_is_wrong(enum kind kind)
{
	if (kind == NO_STDIN)
		return "input was not delivered: its data is not base64";
	if (kind == LOST)
		return "input was not delivered: a message of the client was too large";
	return "a message of the client could not be understood";
}

/* Begins with the first item. */
static void carry_out(struct coop_inbox *inbox)
{
	static const struct coop_error failure = {.code = "internal", .message = "out of memory"};
	struct coop_handler handler = {.done = on_done, .user = inbox};
	struct item *item = inbox->first;
	size_t left = item->size - item->done;
	json_t *args = NULL;

	if (item->kind == REFUSE || item->kind == NO_STDIN || item->kind == LOST) {
		if (item->kind == NO_STDIN)
			acknowledge(inbox, "stdin_ack", item, "invalid_argument");
		note(inbox, what_is_wrong(item->kind));
		pop(inbox);
		return;
	}
	/* Whoever is in the middle of a long message goes first. */
	if ((item->kind == STDIN || item->kind == CLOSE_STDIN) &&
	    !coop_feed_turn_take(inbox->feed, &inbox->turn))
		return;
	const char *op = prepare(inbox, item, &args);
	if (args)
		inbox->call = coop_user_call(
			inbox->user, op, args, item->bytes + item->done,
			left < COOP_WRITE_STDIN_MAX ? left : COOP_WRITE_STDIN_MAX, &handler);
	if (!inbox->call)
		finish(inbox, -1, &failure);
}

/* Whether more waits than may, or would if so much more did. */
static bool is_full(const struct coop_inbox *inbox, size_t bytes, size_t count)
{
	size_t waiting = inbox->bytes + bytes;

	if (inbox->count + count > COOP_INBOX_COUNT_MAX || waiting > COOP_INBOX_BYTES_MAX)
		return true;
	return waiting > COOP_INBOX_BYTES_LEAST &&
	       coop_user_input(inbox->user) + bytes > COOP_USER_INPUT_MAX;
}

static void go_on(struct coop_inbox *inbox)
{
	if (inbox->running)
		return;
	inbox->running = true;
	for (const struct item *item = NULL;
	     inbox->feed && !inbox->call && inbox->first && item != inbox->first;) {
		item = inbox->first;
		carry_out(inbox);
	}
	inbox->running = false;
	if (!inbox->ws && !inbox->first && inbox->feed) {
		destroy(inbox);
		return;
	}
	if (inbox->paused && !is_full(inbox, COOP_INBOX_BYTES_STEP, COOP_INBOX_COUNT_STEP)) {
		inbox->paused = false;
		if (inbox->ws)
			coop_ws_resume(inbox->ws);
	}
}

static struct item *add(struct coop_inbox *inbox, enum kind kind, size_t size)
{
	struct item *item = coop_mem_zalloc(sizeof *item + size);

	if (!item) {
		/* What cannot be carried out must not be passed over. */
		if (inbox->ws)
			coop_ws_close(inbox->ws, COOP_WS_INTERNAL, "out of memory");
		return NULL;
	}
	item->kind = kind;
	item->size = size;
	*inbox->last = item;
	inbox->last = &item->next;
	inbox->bytes += size;
	coop_user_input_more(inbox->user, size);
	inbox->count++;
	return item;
}

static void add_stdin(struct coop_inbox *inbox, const char *text, size_t length)
{
	size_t size;
	struct item *item = add(inbox, STDIN, coop_base64_room(length));

	if (!item)
		return;
	if (!text || coop_base64_decode(text, length, item->bytes, &size) < 0) {
		item->kind = NO_STDIN;
		size = 0;
	}
	less(inbox, item->size - size);
	item->size = size;
}

static void add_resize(struct coop_inbox *inbox, const json_t *message)
{
	const json_t *cols = json_object_get(message, "cols");
	const json_t *rows = json_object_get(message, "rows");
	json_int_t width = json_integer_value(cols), height = json_integer_value(rows);

	/* There is no answer that a wrong size could be reported in. */
	if (width < 1 || width > 65535 || height < 1 || height > 65535)
		return;
	struct item *item = add(inbox, RESIZE, 0);
	if (!item)
		return;
	item->cols = (int)width;
	item->rows = (int)height;
}

static void add_signal(struct coop_inbox *inbox, const json_t *message)
{
	int number = coop_process_signal(json_object_get(message, "signal"));
	struct item *item = number > 0 ? add(inbox, SIGNAL, 0) : NULL;

	if (item)
		item->signal = number;
}

/* Listens no more while there is much to do, and begins. */
static void added(struct coop_inbox *inbox)
{
	if (!inbox->paused && inbox->ws && is_full(inbox, 0, 0)) {
		inbox->paused = true;
		coop_ws_pause(inbox->ws);
	}
	go_on(inbox);
}

void coop_inbox_stdin(struct coop_inbox *inbox, const char *text, size_t length)
{
	add_stdin(inbox, text, length);
	added(inbox);
}

void coop_inbox_refuse(struct coop_inbox *inbox)
{
	(void)add(inbox, REFUSE, 0);
	added(inbox);
}

void coop_inbox_lost(struct coop_inbox *inbox)
{
	(void)add(inbox, LOST, 0);
	added(inbox);
}

void coop_inbox_message(struct coop_inbox *inbox, const char *type, const json_t *message)
{
	const json_t *data = json_object_get(message, "data");

	if (!strcmp(type, "stdin"))
		add_stdin(inbox, json_string_value(data), json_string_length(data));
	else if (!strcmp(type, "close_stdin"))
		(void)add(inbox, CLOSE_STDIN, 0);
	else if (!strcmp(type, "resize"))
		add_resize(inbox, message);
	else if (!strcmp(type, "signal"))
		add_signal(inbox, message);
	added(inbox);
}

void coop_inbox_open(struct coop_inbox *inbox, struct coop_feed *feed)
{
	inbox->feed = coop_feed_ref(feed);
	if (!inbox->ws)
		wait_for_progress(inbox);
	go_on(inbox);
}

void coop_inbox_leave(struct coop_inbox *inbox)
{
	inbox->ws = NULL;
	if (inbox->feed && !inbox->first)
		destroy(inbox);
	else if (inbox->feed)
		wait_for_progress(inbox);
}

void coop_inbox_drop(struct coop_inbox *inbox)
{
	if (inbox)
		destroy(inbox);
}
