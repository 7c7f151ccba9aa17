#include "doors/tools/core/keeper_link.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "coop.h"

/* The keeper takes 256 requests of a connection at a time. What waits may not take all of them:
 * those that only ask go on. */
#define CALLS_MAX 240u
#define WAITS_MAX 150u
#define LINES_MAX 16u

struct line {
	struct coop_keeper_link *link;
	struct coop *coop;
	uv_poll_t poll;
	int watched;
	bool deaf; /* it takes nothing any more; what it has said is still to be read */
	bool closed;
};

struct call {
	struct line *line; /* NULL: still waiting for one, or to be told of a failure */
	struct coop_keeper_link *link;
	uint64_t request;
	struct coop_handler handler;
	bool dropped;
	/* While it waits for a connection with room. */
	char *op;
	json_t *args;
	void *data;
	size_t size;
	struct coop_error *error; /* what it is to be told */
	struct call *next;
	struct call *newer, **place; /* of all that are open */
};

/* A connection on its way. Whoever has to be started or says hello late must not hold up the loop:
 * that is waited for in a thread. */
struct opening {
	uv_work_t work;
	struct coop_keeper_link *link;
	struct coop *coop;
	int status;
	struct coop_error error;
};

struct coop_keeper_link {
	uv_loop_t *loop;
	struct coop_tool_host host;
	struct coop_keeper_link_options options;
	char *agent;
	struct line *lines[LINES_MAX];
	unsigned count, open; /* `open`: handles of the loop that are not closed yet */
	struct call *calls;   /* all that are open */
	struct call *waiting, **last;
	uv_timer_t turn; /* runs when something waits for the next turn of the loop */
	struct opening *opening;
	bool closing;
};

static void on_poll(uv_poll_t *poll, int status, int events);

static void watch(struct line *line)
{
	short wanted = coop_poll_events(line->coop);
	int events = (wanted & POLLIN ? UV_READABLE : 0) | (wanted & POLLOUT ? UV_WRITABLE : 0);

	if (line->closed || events == line->watched)
		return;
	line->watched = events;
	(void)uv_poll_start(&line->poll, events, on_poll);
}

static void free_call(struct call *call)
{
	*call->place = call->newer;
	if (call->newer)
		call->newer->place = call->place;
	free(call->op);
	json_decref(call->args);
	free(call->data);
	free(call->error);
	free(call);
}

static void on_done(void *user, uint64_t request, int status, const char *json,
		    const struct coop_error *error);

static void settle(struct coop_keeper_link *link)
{
	const struct coop_error gone = {"unreachable", "the connection has been closed", "{}"};

	if (!link->closing || link->open)
		return;
	/* Who still waits (for a process to be started, which is never given up) hears that nothing
	 * comes. */
	while (link->calls)
		on_done(link->calls, 0, -EPIPE, NULL, &gone);
	free(link->agent);
	free(link);
}

static void on_line_closed(uv_handle_t *handle)
{
	struct line *line = handle->data;
	struct coop_keeper_link *link = line->link;

	coop_close(line->coop);
	free(line);
	link->open--;
	settle(link);
}

static void close_line(struct line *line)
{
	struct coop_keeper_link *link = line->link;

	if (line->closed)
		return;
	line->closed = true;
	for (unsigned i = 0; i < link->count; i++) {
		if (link->lines[i] == line) {
			link->lines[i] = link->lines[--link->count];
			break;
		}
	}
	uv_close((uv_handle_t *)&line->poll, on_line_closed);
}

/* Asks and waits for the answer. Takes the arguments over. */
static int ask(struct coop *coop, const char *op, json_t *args, struct coop_error *error)
{
	struct coop_reply *reply = NULL;
	char *text = args ? json_dumps(args, JSON_COMPACT) : NULL;
	int r = text ? coop_call(coop, op, text, NULL, 0, &reply, error) : -ENOMEM;

	coop_reply_free(reply);
	free(text);
	json_decref(args);
	return r;
}

static int connect_to_keeper(const struct coop_keeper_link *link, struct coop **ret,
			     struct coop_error *error)
{
	int r = link->options.private_keeper ? coop_open_private(NULL, ret, error)
					     : coop_open(NULL, ret, error);

	if (r == 0)
		r = link->agent
			    ? ask(*ret, "login", json_pack("{s:s}", "agent", link->agent), error)
			    : 0;
	if (r == 0)
		r = ask(*ret, COOP_CEILING_OP, coop_door_ceiling_args(&link->options.ceiling),
			error);
	if (r < 0) {
		coop_close(*ret);
		*ret = NULL;
	}
	return r;
}

/* Takes the connection over in every case. */
static int add_line(struct coop_keeper_link *link, struct coop *coop)
{
	struct line *line = coop_mem_zalloc(sizeof *line);
	int r = line ? uv_poll_init(link->loop, &line->poll, coop_fd(coop)) : -ENOMEM;

	if (r < 0) {
		coop_close(coop);
		free(line);
		return r;
	}
	line->coop = coop;
	line->link = link;
	line->poll.data = line;
	link->lines[link->count++] = line;
	link->open++;
	watch(line);
	return 0;
}

static void on_data(void *user, uint64_t request, const struct coop_chunk *chunk)
{
	struct call *call = user;

	if (!call->dropped && call->handler.data)
		call->handler.data(call->handler.user, request, chunk);
}

static void on_event(void *user, uint64_t request, const char *json)
{
	struct call *call = user;

	if (!call->dropped && call->handler.event)
		call->handler.event(call->handler.user, request, json);
}

static void on_done(void *user, uint64_t request, int status, const char *json,
		    const struct coop_error *error)
{
	struct call *call = user;
	struct coop_handler handler = call->handler;
	bool dropped = call->dropped;

	free_call(call);
	if (!dropped && handler.done)
		handler.done(handler.user, request, status, json, error);
}

static void pump(struct coop_keeper_link *link);

static void do_open(uv_work_t *work)
{
	struct opening *opening = work->data;

	opening->status = connect_to_keeper(opening->link, &opening->coop, &opening->error);
}

/* All that waits for a connection that cannot be had. */
static void fail_waiting(struct coop_keeper_link *link, const struct coop_error *error)
{
	struct call *first = link->waiting;

	link->waiting = NULL;
	link->last = &link->waiting;
	while (first) {
		struct call *call = first;
		first = call->next;
		call->next = NULL;
		struct coop_error why = call->error ? *call->error : *error;
		on_done(call, 0, -EIO, NULL, &why);
	}
}

static void on_opened(uv_work_t *work, int status)
{
	struct opening *opening = work->data;
	struct coop_keeper_link *link = opening->link;
	int r = status < 0 ? status : opening->status;

	link->opening = NULL;
	link->open--;
	if (link->closing && r == 0)
		coop_close(opening->coop);
	else if (r == 0 && add_line(link, opening->coop) < 0)
		r = -ENOMEM;
	if (!*opening->error.code)
		opening->error = (struct coop_error){"internal",
						     "there is no memory for a connection", "{}"};
	if (!link->closing && r < 0)
		fail_waiting(link, &opening->error);
	else if (!link->closing)
		pump(link);
	free(opening);
	settle(link);
}

/* Whether another connection is on its way, perhaps from now on; a private keeper has one only. */
static bool open_more(struct coop_keeper_link *link)
{
	if (link->opening)
		return true;
	if (link->count == LINES_MAX || (link->count && link->options.private_keeper))
		return false;
	struct opening *opening = coop_mem_zalloc(sizeof *opening);
	if (!opening)
		return false;
	opening->link = link;
	opening->work.data = opening;
	if (uv_queue_work(link->loop, &opening->work, do_open, on_opened) < 0) {
		free(opening);
		return false;
	}
	link->opening = opening;
	link->open++;
	return true;
}

/* Whether its answer may take as long as it likes. */
static bool may_wait(const char *op)
{
	static const char *const ops[] = {"wait", "follow", "follow_events", "wait_port",
					  "completions"};

	for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
		if (strcmp(ops[i], op) == 0)
			return true;
	return false;
}

static struct line *line_with_room(const struct coop_keeper_link *link, const char *op)
{
	const unsigned most = may_wait(op) ? WAITS_MAX : CALLS_MAX;

	for (unsigned i = 0; i < link->count; i++)
		if (coop_pending(link->lines[i]->coop) < most && !link->lines[i]->deaf)
			return link->lines[i];
	return NULL;
}

static void on_turn(uv_timer_t *timer);

static void enqueue(struct coop_keeper_link *link, struct call *call)
{
	*link->last = call;
	link->last = &call->next;
}

static int submit(struct line *line, struct call *call, const char *op, const json_t *args,
		  const void *data, size_t size, struct coop_error *error)
{
	struct coop_handler handler = {on_data, on_event, on_done, call};
	char *text = args ? json_dumps(args, JSON_COMPACT) : NULL;
	int r = args && !text ? -ENOMEM
			      : coop_submit(line->coop, op, text, data, size, &handler,
					    &call->request, error);

	free(text);
	if (r == 0) {
		call->line = line;
		watch(line);
	}
	line->deaf = line->deaf || r == -EPIPE;
	return r;
}

/* It is told in the next turn: never from within the call. */
static int fail_later(struct call *call, int status, const struct coop_error *error)
{
	call->error = coop_mem_alloc(sizeof *call->error);
	if (!call->error)
		return -ENOMEM;
	*call->error = *error;
	if (!*error->details)
		memcpy(call->error->details, "{}", 3);
	if (status == -ENOMEM || !*error->code) {
		(void)memset(call->error, 0, sizeof *call->error);
		memcpy(call->error->code, "internal", 9);
		memcpy(call->error->message, "there is no memory for the request", 35);
		memcpy(call->error->details, "{}", 3);
	}
	enqueue(call->link, call);
	return uv_timer_start(&call->link->turn, on_turn, 0, 0);
}

static int wait_for_room(struct call *call, const char *op, json_t *args, const void *data,
			 size_t size)
{
	call->op = coop_mem_strdup(op);
	call->data = size ? coop_mem_alloc(size) : NULL;
	if (!call->op || (size && !call->data))
		return -ENOMEM;
	if (size)
		memcpy(call->data, data, size);
	call->size = size;
	call->args = json_incref(args);
	enqueue(call->link, call);
	return 0;
}

static void *start_call(void *context, const char *op, json_t *args, const void *data, size_t size,
			const struct coop_handler *handler)
{
	struct coop_keeper_link *link = context;
	struct call *call = link->closing ? NULL : coop_mem_zalloc(sizeof *call);
	struct coop_error error = {0};
	int r = -ENOMEM;

	if (call) {
		call->link = link;
		call->handler = *handler;
		call->newer = link->calls;
		call->place = &link->calls;
		if (call->newer)
			call->newer->place = &call->newer;
		link->calls = call;
		struct line *line = line_with_room(link, op);
		bool more = !line && open_more(link);
		if (line)
			r = submit(line, call, op, args, data, size, &error);
		else if (more || (link->count && !may_wait(op)))
			r = wait_for_room(call, op, args, data, size);
		else if (link->count)
			error = (struct coop_error){"quota", "too many calls wait at a time", "{}"};
		if (r < 0)
			r = fail_later(call, *error.code ? -EAGAIN : r, &error);
	}
	json_decref(args);
	if (r < 0 && call) {
		free_call(call);
		call = NULL;
	}
	return call;
}

static void drop_call(void *handle)
{
	struct call *call = handle;

	call->dropped = true;
	if (call->line)
		(void)coop_cancel(call->line->coop, call->request);
	if (call->line)
		watch(call->line);
}

/* What waited for room, and what is to be told of a failure. */
static void pump(struct coop_keeper_link *link)
{
	while (link->waiting) {
		struct call *call = link->waiting;
		struct coop_error error = {0};
		struct line *line = NULL;
		if (!call->error && !call->dropped && !(line = line_with_room(link, call->op)) &&
		    (link->count || open_more(link)))
			return;
		link->waiting = call->next;
		call->next = NULL;
		if (!link->waiting)
			link->last = &link->waiting;
		if (call->error) {
			error = *call->error;
			on_done(call, 0, -EIO, NULL, &error);
		} else if (call->dropped) {
			free_call(call);
		} else if (!line || submit(line, call, call->op, call->args, call->data, call->size,
					   &error) < 0) {
			on_done(call, 0, -EIO, NULL, &error);
		}
	}
}

static void on_turn(uv_timer_t *timer)
{
	pump(timer->data);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct line *line = poll->data;
	struct coop_error error = {0};

	(void)events;
	if (line->closed)
		return;
	/* After an error libuv looks no more; what had come before it is still there, and then the
	 * end. */
	if (status < 0)
		line->watched = 0;
	/* All that is open has been told when this fails; the next call connects anew. */
	bool ended = coop_dispatch(line->coop, &error) < 0;
	if (line->closed)
		return;
	struct coop_keeper_link *link = line->link;
	if (ended)
		close_line(line);
	else
		watch(line);
	pump(link);
}

int coop_keeper_link_new(uv_loop_t *loop, const struct coop_keeper_link_options *options,
			 struct coop_keeper_link **ret, struct coop_error *error)
{
	struct coop_keeper_link *link = coop_mem_zalloc(sizeof *link);
	int r = link ? 0 : -ENOMEM;

	*ret = NULL;
	if (r < 0)
		return r;
	link->loop = loop;
	link->options = *options;
	link->host = (struct coop_tool_host){loop, link, start_call, drop_call};
	link->last = &link->waiting;
	if (options->agent && !(link->agent = coop_mem_strdup(options->agent)))
		r = -ENOMEM;
	struct coop *coop = NULL;
	if (r == 0)
		r = connect_to_keeper(link, &coop, error);
	if (r == 0)
		r = add_line(link, coop);
	if (r < 0) {
		free(link->agent);
		free(link);
		return r;
	}
	(void)uv_timer_init(loop, &link->turn);
	link->turn.data = link;
	link->open++;
	*ret = link;
	return 0;
}

static void on_turn_closed(uv_handle_t *handle)
{
	struct coop_keeper_link *link = handle->data;

	link->open--;
	settle(link);
}

void coop_keeper_link_close(struct coop_keeper_link *link)
{
	link->closing = true;
	while (link->count)
		close_line(link->lines[0]);
	uv_close((uv_handle_t *)&link->turn, on_turn_closed);
	if (link->opening)
		(void)uv_cancel((uv_req_t *)&link->opening->work);
}

bool coop_keeper_link_is_opening(const struct coop_keeper_link *link)
{
	return link->opening != NULL;
}

const struct coop_tool_host *coop_keeper_link_host(const struct coop_keeper_link *link)
{
	return &link->host;
}

struct coop *coop_keeper_link_first(const struct coop_keeper_link *link)
{
	return link->count ? link->lines[0]->coop : NULL;
}
