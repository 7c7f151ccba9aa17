#include "doors/http/runtime/inbox.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "coop.h"
#include "doors/http/net/net.h"
#include "doors/http/users/user.h"

struct item {
	struct coop_link link;
	enum coop_inbox_kind kind;
	int cols, rows, signal;
	size_t size, done; /* of bytes: what the process has got */
	uint8_t bytes[];
};

struct coop_inbox {
	struct coop_user *user;                 /* held */
	const struct coop_inbox_client *client; /* NULL: gone */
	void *context;
	struct coop_feed *feed; /* held; NULL: there is no process yet */
	struct coop_link items;
	size_t bytes, count;
	bool paused, running;
	bool noted;             /* that input did not get through */
	struct coop_call *call; /* of the first item */
	struct coop_feed_turn turn;
	uv_timer_t timer; /* runs once the client has gone */
};

static void go_on(struct coop_inbox *inbox);

static void on_turn(struct coop_feed_turn *turn)
{
	go_on(COOP_LIST_ITEM(turn, struct coop_inbox, turn));
}

static struct item *item_of(struct coop_link *link)
{
	return COOP_LIST_ITEM(link, struct item, link);
}

/* The one that is carried out; NULL: none waits. */
static struct item *first_of(struct coop_inbox *inbox)
{
	return coop_list_empty(&inbox->items) ? NULL : item_of(inbox->items.next);
}

struct coop_inbox *coop_inbox_new(struct coop_user *user, const struct coop_inbox_client *client,
				  void *context)
{
	struct coop_inbox *inbox = coop_mem_zalloc(sizeof *inbox);

	if (!inbox)
		return NULL;
	inbox->user = coop_user_ref(user);
	inbox->client = client;
	inbox->context = context;
	coop_list_init(&inbox->items);
	inbox->turn.go = on_turn;
	(void)uv_timer_init(coop_user_net(user)->loop, &inbox->timer);
	inbox->timer.data = inbox;
	return inbox;
}

/* So much of its input waits no more. */
static void less(struct coop_inbox *inbox, size_t bytes)
{
	inbox->bytes -= bytes;
	*coop_user_input(inbox->user) -= bytes;
}

/* The process has got so much more of it. */
static void took(struct coop_inbox *inbox, struct item *item, size_t bytes)
{
	item->done += bytes;
	less(inbox, bytes);
}

static void pop(struct coop_inbox *inbox)
{
	struct item *item = first_of(inbox);

	coop_list_remove(&item->link);
	less(inbox, item->size - item->done);
	inbox->count--;
	free(item);
}

static void destroy(struct coop_inbox *inbox)
{
	coop_user_drop(COOP_TAKE_PTR(inbox->call));
	while (!coop_list_empty(&inbox->items))
		pop(inbox);
	if (inbox->feed)
		coop_feed_turn_end(inbox->feed, &inbox->turn);
	coop_feed_unref(COOP_TAKE_PTR(inbox->feed));
	struct coop_user *user = COOP_TAKE_PTR(inbox->user);
	uv_close((uv_handle_t *)&inbox->timer, coop_http_free_owner);
	coop_user_unref(user);
}

/* The answer that a client waits for. */
static void tell(const struct coop_inbox *inbox, const struct item *item, bool refused)
{
	const struct coop_inbox_outcome outcome = {
		.kind = item->kind,
		.name = coop_feed_name(inbox->feed),
		.refused = refused,
		.partly = item->done < item->size,
		.written = item->done,
	};

	if (inbox->client)
		inbox->client->told(inbox->context, &outcome);
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

	COOP_LIST_EACH(&inbox->items, link)
	{
		if (item_of(link)->kind != COOP_INBOX_BYTES)
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
		tell(inbox, item, false);
		return;
	}
	tell(inbox, item, true);
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
	struct item *item = first_of(inbox);

	if (item->kind == COOP_INBOX_BYTES && status < 0)
		explain(inbox, item, error);
	else if (item->kind == COOP_INBOX_BYTES)
		tell(inbox, item, false);
	else if (item->kind == COOP_INBOX_CLOSE)
		tell(inbox, item, status < 0 && !is_over(error));
	pop(inbox);
	coop_feed_turn_end(inbox->feed, &inbox->turn);
}

static void on_done(void *user, uint64_t request, int status, const char *json,
		    const struct coop_error *error)
{
	struct coop_inbox *inbox = user;
	struct item *item = first_of(inbox);

	inbox->call = NULL;
	if (!inbox->client)
		wait_for_progress(inbox);
	if (status == 0 && item->kind == COOP_INBOX_BYTES) {
		size_t left = item->size - item->done;
		took(inbox, item, left < COOP_WRITE_STDIN_MAX ? left : COOP_WRITE_STDIN_MAX);
	}
	if (status < 0 || item->kind != COOP_INBOX_BYTES || item->done == item->size) {
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
	case COOP_INBOX_BYTES:
		*ret_args = json_pack("{s:s,s:i}", "id", id, "timeout_ms", -1);
		return "write_stdin";
	case COOP_INBOX_RESIZE:
		*ret_args = json_pack("{s:s,s:i,s:i}", "id", id, "cols", item->cols, "rows",
				      item->rows);
		return "resize";
	case COOP_INBOX_SIGNAL:
		if (item->signal != SIGKILL) {
			*ret_args = json_pack("{s:s,s:i,s:s}", "id", id, "signal", item->signal,
					      "target", "tree");
			return "signal";
		}
		*ret_args = json_pack("{s:s}", "id", id);
		return "kill";
	case COOP_INBOX_CLOSE:
	case COOP_INBOX_GARBLED:
	case COOP_INBOX_UNREAD:
	case COOP_INBOX_LOST:
		break;
	}
	*ret_args = json_pack("{s:s}", "id", id);
	return "close_stdin";
}

static const char *what_is_wrong(enum coop_inbox_kind kind)
{
	if (kind == COOP_INBOX_GARBLED)
		return "input was not delivered: its data is not base64";
	if (kind == COOP_INBOX_LOST)
		return "input was not delivered: a message of the client was too large";
	return "a message of the client could not be understood";
}

/* Begins with the first item. */
static void carry_out(struct coop_inbox *inbox)
{
	static const struct coop_error failure = {.code = "internal", .message = "out of memory"};
	struct coop_handler handler = {.done = on_done, .user = inbox};
	struct item *item = first_of(inbox);
	size_t left = item->size - item->done;
	json_t *args = NULL;

	if (item->kind == COOP_INBOX_UNREAD || item->kind == COOP_INBOX_GARBLED ||
	    item->kind == COOP_INBOX_LOST) {
		if (item->kind == COOP_INBOX_GARBLED)
			tell(inbox, item, true);
		note(inbox, what_is_wrong(item->kind));
		pop(inbox);
		return;
	}
	/* Whoever is in the middle of a long message goes first. */
	if ((item->kind == COOP_INBOX_BYTES || item->kind == COOP_INBOX_CLOSE) &&
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
	       *coop_user_input(inbox->user) + bytes > COOP_USER_INPUT_MAX;
}

static void go_on(struct coop_inbox *inbox)
{
	if (inbox->running)
		return;
	inbox->running = true;
	for (const struct item *item = NULL, *first;
	     inbox->feed && !inbox->call && (first = first_of(inbox)) && item != first;) {
		item = first;
		carry_out(inbox);
	}
	inbox->running = false;
	if (!inbox->client && coop_list_empty(&inbox->items) && inbox->feed) {
		destroy(inbox);
		return;
	}
	if (inbox->paused && !is_full(inbox, COOP_INBOX_BYTES_STEP, COOP_INBOX_COUNT_STEP)) {
		inbox->paused = false;
		if (inbox->client)
			inbox->client->listen(inbox->context, true);
	}
}

static struct item *add(struct coop_inbox *inbox, enum coop_inbox_kind kind, size_t size)
{
	struct item *item = coop_mem_zalloc(sizeof *item + size);

	if (!item) {
		if (inbox->client)
			inbox->client->starved(inbox->context);
		return NULL;
	}
	item->kind = kind;
	item->size = size;
	coop_list_add(&inbox->items, &item->link);
	inbox->bytes += size;
	*coop_user_input(inbox->user) += size;
	inbox->count++;
	return item;
}

/* Listens no more while there is much to do, and begins. */
static void added(struct coop_inbox *inbox)
{
	if (!inbox->paused && inbox->client && is_full(inbox, 0, 0)) {
		inbox->paused = true;
		inbox->client->listen(inbox->context, false);
	}
	go_on(inbox);
}

void coop_inbox_base64(struct coop_inbox *inbox, const char *text, size_t length)
{
	size_t size;
	struct item *item = add(inbox, COOP_INBOX_BYTES, coop_base64_room(length));

	if (item && (!text || coop_base64_decode(text, length, item->bytes, &size) < 0)) {
		item->kind = COOP_INBOX_GARBLED;
		size = 0;
	}
	if (item) {
		less(inbox, item->size - size);
		item->size = size;
	}
	added(inbox);
}

void coop_inbox_add(struct coop_inbox *inbox, enum coop_inbox_kind kind)
{
	(void)add(inbox, kind, 0);
	added(inbox);
}

void coop_inbox_resize(struct coop_inbox *inbox, unsigned cols, unsigned rows)
{
	struct item *item = add(inbox, COOP_INBOX_RESIZE, 0);

	if (item) {
		item->cols = (int)cols;
		item->rows = (int)rows;
	}
	added(inbox);
}

void coop_inbox_signal(struct coop_inbox *inbox, int number)
{
	struct item *item = add(inbox, COOP_INBOX_SIGNAL, 0);

	if (item)
		item->signal = number;
	added(inbox);
}

void coop_inbox_open(struct coop_inbox *inbox, struct coop_feed *feed)
{
	inbox->feed = coop_feed_ref(feed);
	if (!inbox->client)
		wait_for_progress(inbox);
	go_on(inbox);
}

void coop_inbox_leave(struct coop_inbox *inbox)
{
	inbox->client = NULL;
	if (inbox->feed && coop_list_empty(&inbox->items))
		destroy(inbox);
	else if (inbox->feed)
		wait_for_progress(inbox);
}

void coop_inbox_drop(struct coop_inbox *inbox)
{
	if (inbox)
		destroy(inbox);
}
