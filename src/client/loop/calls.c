#include "client/loop/calls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "base/mem.h"

struct coop_call {
	struct coop_calls *calls;
	struct coop_link in_all;
	struct coop_link in_queue; /* of those that wait, or are to be told of a failure */
	struct coop_handler handler;
	bool dropped;
	bool sent;                  /* a connection knows it */
	struct coop_uplink *uplink; /* that carries it; NULL: none (yet, or any more) */
	uint64_t request;
	/* Until it is on its way. */
	char *op;
	json_t *args;
	void *data;
	size_t size;
	struct coop_error *error; /* what it is to be told */
};

struct coop_calls {
	struct coop_calls_options options;
	struct coop_uplink *uplinks[COOP_CALLS_UPLINKS_MAX];
	unsigned count, waiting_count;
	unsigned handles; /* of the loop that are not closed yet */
	struct coop_link all, waiting, failed;
	struct coop_link told; /* why nothing comes, at the end, while connections know them */
	uv_timer_t turn;       /* runs when something is to be told in the loop's next turn */
	bool closing;
	void (*closed)(void *user);
	void *closed_user;
};

static const struct coop_error no_memory = {"internal", "there is no memory for the request", "{}"};

static void leave_queue(struct coop_call *call)
{
	if (call->op)
		call->calls->waiting_count--;
	coop_list_remove(&call->in_queue);
	free(call->op);
	call->op = NULL;
}

static void destroy(struct coop_call *call)
{
	struct coop_calls *calls = call->calls;

	leave_queue(call);
	coop_list_remove(&call->in_all);
	json_decref(call->args);
	free(call->data);
	free(call->error);
	free(call);
	if (!calls->closing && calls->options.held && coop_list_empty(&calls->all))
		calls->options.held(calls->options.user, false);
}

static void on_data(void *user, uint64_t request, const struct coop_chunk *chunk)
{
	struct coop_call *call = user;

	if (!call->dropped && call->handler.data)
		call->handler.data(call->handler.user, request, chunk);
}

static void on_event(void *user, uint64_t request, const char *json)
{
	struct coop_call *call = user;

	if (!call->dropped && call->handler.event)
		call->handler.event(call->handler.user, request, json);
}

static void on_done(void *user, uint64_t request, int status, const char *json,
		    const struct coop_error *error)
{
	struct coop_call *call = user;
	bool dropped = call->dropped;

	call->dropped = true; /* it is over, whatever is done to it from there */
	call->uplink = NULL;
	if (!dropped && call->handler.done)
		call->handler.done(call->handler.user, request, status, json, error);
	destroy(call);
}

static void on_turn(uv_timer_t *timer)
{
	struct coop_calls *calls = timer->data;

	while (!coop_list_empty(&calls->failed)) {
		struct coop_call *call =
			COOP_LIST_ITEM(calls->failed.next, struct coop_call, in_queue);
		coop_list_remove(&call->in_queue);
		on_done(call, 0, -EIO, NULL, call->error ? call->error : &no_memory);
	}
}

/* It is told in the next turn: never from within the call. */
static void fail_later(struct coop_call *call, const struct coop_error *error)
{
	leave_queue(call);
	call->error = *error->code ? coop_mem_alloc(sizeof *call->error) : NULL;
	if (call->error) {
		*call->error = *error;
		if (!*error->details)
			memcpy(call->error->details, "{}", 3);
	}
	coop_list_add(&call->calls->failed, &call->in_queue);
	(void)uv_timer_start(&call->calls->turn, on_turn, 0, 0);
}

static void submit(struct coop_call *call, struct coop_uplink *uplink, const char *op,
		   const json_t *args, const void *data, size_t size)
{
	const struct coop_handler handler = {on_data, on_event, on_done, call};
	char *text = args ? json_dumps(args, JSON_COMPACT) : NULL;
	struct coop_error error = {0};
	int r = args && !text ? -ENOMEM
			      : coop_uplink_submit(uplink, op, text, data, size, &handler,
						   &call->request, &error);

	free(text);
	if (r < 0)
		fail_later(call, r == -ENOMEM ? &no_memory : &error);
	else
		call->uplink = uplink;
	call->sent = r == 0;
}

/* Whether its answer may take as long as it likes. */
static bool stands(const char *op)
{
	static const char *const ops[] = {"wait", "follow", "follow_events", "wait_port",
					  "completions"};

	for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
		if (strcmp(ops[i], op) == 0)
			return true;
	return false;
}

static struct coop_uplink *with_room(const struct coop_calls *calls, const char *op)
{
	unsigned most = stands(op) ? calls->options.standing_max : calls->options.open_max;

	for (unsigned i = 0; i < calls->count; i++)
		if (coop_uplink_pending(calls->uplinks[i]) < most &&
		    coop_uplink_takes(calls->uplinks[i]))
			return calls->uplinks[i];
	return NULL;
}

static int wait_for_room(struct coop_call *call, const char *op, json_t *args, const void *data,
			 size_t size)
{
	call->data = size ? coop_mem_alloc(size) : NULL;
	if (size && !call->data)
		return -ENOMEM;
	if (size)
		memcpy(call->data, data, size);
	call->size = size;
	call->op = coop_mem_strdup(op);
	if (!call->op)
		return -ENOMEM;
	call->args = json_incref(args);
	coop_list_add(&call->calls->waiting, &call->in_queue);
	call->calls->waiting_count++;
	return 0;
}

static bool has_place(const struct coop_calls *calls)
{
	return calls->waiting_count < calls->options.waiting_max;
}

/* No connection has room for it. */
static void queue(struct coop_call *call, const char *op, json_t *args, const void *data,
		  size_t size)
{
	static const struct coop_error too_many = {"quota", "too many calls wait at a time", "{}"};
	struct coop_calls *calls = call->calls;
	struct coop_error error = {0};
	bool more = calls->options.want(calls->options.user, &error);

	if (has_place(calls) && (more || (calls->count && !stands(op)))) {
		if (wait_for_room(call, op, args, data, size) < 0)
			fail_later(call, &no_memory);
	} else {
		fail_later(call, calls->count || more ? &too_many : &error);
	}
}

struct coop_call *coop_calls_begin(struct coop_calls *calls, const char *op, json_t *args,
				   const void *data, size_t size,
				   const struct coop_handler *handler)
{
	struct coop_call *call = calls->closing ? NULL : coop_mem_zalloc(sizeof *call);

	if (call) {
		call->calls = calls;
		call->handler = *handler;
		if (calls->options.held && coop_list_empty(&calls->all))
			calls->options.held(calls->options.user, true);
		coop_list_add(&calls->all, &call->in_all);
		struct coop_uplink *uplink = with_room(calls, op);
		if (uplink)
			submit(call, uplink, op, args, data, size);
		else
			queue(call, op, args, data, size);
	}
	json_decref(args);
	return call;
}

void coop_calls_drop(struct coop_call *call)
{
	if (!call || call->dropped)
		return;
	call->dropped = true;
	if (call->uplink)
		coop_uplink_cancel(call->uplink, call->request);
	else if (!call->sent)
		destroy(call);
}

/* Sends what waits, as far as there is room now. */
static void pump(struct coop_calls *calls)
{
	while (!coop_list_empty(&calls->waiting)) {
		struct coop_call *call =
			COOP_LIST_ITEM(calls->waiting.next, struct coop_call, in_queue);
		struct coop_uplink *uplink = with_room(calls, call->op);
		struct coop_error error = {0};
		if (uplink) {
			COOP_AUTO_FREE char *op = COOP_TAKE_PTR(call->op);
			calls->waiting_count--;
			coop_list_remove(&call->in_queue);
			submit(call, uplink, op, call->args, call->data, call->size);
			json_decref(COOP_TAKE_PTR(call->args));
			free(COOP_TAKE_PTR(call->data));
		} else if (calls->options.want(calls->options.user, &error) || calls->count) {
			return;
		} else {
			fail_later(call, &error);
		}
	}
}

void coop_calls_fail(struct coop_calls *calls, const struct coop_error *error)
{
	while (!coop_list_empty(&calls->waiting))
		fail_later(COOP_LIST_ITEM(calls->waiting.next, struct coop_call, in_queue), error);
}

/* Once nothing is left on the loop. */
static void settle(struct coop_calls *calls)
{
	calls->handles--;
	if (calls->handles)
		return;
	while (!coop_list_empty(&calls->told))
		destroy(COOP_LIST_ITEM(calls->told.next, struct coop_call, in_all));
	if (calls->closed)
		calls->closed(calls->closed_user);
	free(calls);
}

static void on_uplink_closed(void *user)
{
	settle(user);
}

/* Its calls are nobody's to cancel any more. */
static void end_uplink(struct coop_calls *calls, unsigned index)
{
	struct coop_uplink *uplink = calls->uplinks[index];

	calls->count--;
	memmove(&calls->uplinks[index], &calls->uplinks[index + 1],
		(calls->count - index) * sizeof(struct coop_uplink *));
	COOP_LIST_EACH(&calls->all, link)
	{
		struct coop_call *call = COOP_LIST_ITEM(link, struct coop_call, in_all);
		if (call->uplink == uplink)
			call->uplink = NULL;
	}
	coop_uplink_close(uplink);
}

static void on_turned(void *user, struct coop_uplink *uplink, const struct coop_error *ended)
{
	struct coop_calls *calls = user;

	for (unsigned i = 0; ended && i < calls->count; i++)
		if (calls->uplinks[i] == uplink)
			end_uplink(calls, i);
	if (ended && calls->options.lost)
		calls->options.lost(calls->options.user, ended);
	pump(calls);
}

int coop_calls_add(struct coop_calls *calls, struct coop_uplink *uplink)
{
	const struct coop_uplink_owner owner = {on_turned, on_uplink_closed, calls};

	coop_uplink_give(uplink, &owner);
	calls->handles++;
	if (calls->closing || calls->count == COOP_CALLS_UPLINKS_MAX) {
		coop_uplink_close(uplink);
		return -EMFILE;
	}
	calls->uplinks[calls->count++] = uplink;
	pump(calls);
	return 0;
}

unsigned coop_calls_uplinks(const struct coop_calls *calls)
{
	return calls->count;
}

struct coop *coop_calls_first(const struct coop_calls *calls)
{
	return calls->count ? coop_uplink_coop(calls->uplinks[0]) : NULL;
}

struct coop_calls *coop_calls_new(uv_loop_t *loop, const struct coop_calls_options *options)
{
	struct coop_calls *calls = coop_mem_zalloc(sizeof *calls);

	if (!calls)
		return NULL;
	calls->options = *options;
	coop_list_init(&calls->all);
	coop_list_init(&calls->waiting);
	coop_list_init(&calls->failed);
	coop_list_init(&calls->told);
	(void)uv_timer_init(loop, &calls->turn);
	calls->turn.data = calls;
	calls->handles = 1;
	return calls;
}

static void on_turn_closed(uv_handle_t *handle)
{
	settle(handle->data);
}

/* This may be in the middle of what a connection is dispatching: what it knows of must stay. */
static void tell_all(struct coop_calls *calls, const struct coop_error *why)
{
	while (!coop_list_empty(&calls->all)) {
		struct coop_call *call = COOP_LIST_ITEM(calls->all.next, struct coop_call, in_all);
		bool dropped = call->dropped;
		call->dropped = true;
		coop_list_remove(&call->in_all);
		coop_list_add(&calls->told, &call->in_all);
		if (!dropped && call->handler.done)
			call->handler.done(call->handler.user, 0, -EPIPE, NULL, why);
		if (!call->sent)
			destroy(call);
	}
}

void coop_calls_close(struct coop_calls *calls, const struct coop_error *why,
		      void (*closed)(void *user), void *user)
{
	calls->closing = true;
	calls->closed = closed;
	calls->closed_user = user;
	while (calls->count)
		end_uplink(calls, 0);
	tell_all(calls, why);
	uv_close((uv_handle_t *)&calls->turn, on_turn_closed);
}
