#include "doors/http/users/call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "doors/http/main/gateway.h"
#include "doors/http/users/link.h"
#include "doors/http/users/user.h"

struct coop_user_call {
	struct coop_user *user;
	struct coop_user_call *after, **before; /* among all of the user */
	struct coop_handler handler;
	bool dropped;
	/* On its way. */
	struct coop_user_link *link;
	uint64_t request;
	/* Until it is. */
	struct coop_user_call *next;
	char op[32];
	char *args;
	void *data;
	size_t size;
	struct coop_error *error; /* why it failed, for those that are to be told */
};

static void destroy(struct coop_user_call *call)
{
	struct coop_user *user = call->user;

	*call->before = call->after;
	if (call->after)
		call->after->before = call->before;
	free(call->args);
	free(call->data);
	free(call->error);
	free(call);
	coop_user_unref(user);
}

static void on_data(void *context, uint64_t request, const struct coop_chunk *chunk)
{
	struct coop_user_call *call = context;

	(void)request;
	if (!call->dropped && call->handler.data)
		call->handler.data(call->handler.user, 0, chunk);
}

static void on_event(void *context, uint64_t request, const char *json)
{
	struct coop_user_call *call = context;

	(void)request;
	if (!call->dropped && call->handler.event)
		call->handler.event(call->handler.user, 0, json);
}

static void on_done(void *context, uint64_t request, int status, const char *json,
		    const struct coop_error *error)
{
	struct coop_user_call *call = context;
	bool dropped = call->dropped;

	(void)request;
	call->dropped = true; /* it is over, whatever is done to it from there */
	call->link = NULL;
	if (!dropped && call->handler.done)
		call->handler.done(call->handler.user, 0, status, json, error);
	destroy(call);
}

static const struct coop_error no_memory = {.code = "internal", .message = "out of memory"};

static void on_failing(uv_timer_t *timer)
{
	struct coop_callers *users = timer->data;

	while (users->failed) {
		struct coop_user_call *call = users->failed;
		users->failed = call->next;
		if (!users->failed)
			users->failed_last = &users->failed;
		on_done(call, 0, -EREMOTEIO, NULL, call->error ? call->error : &no_memory);
	}
}

/* To be told in the loop's next turn, never from within a call. */
static void fail_later(struct coop_user_call *call, const struct coop_error *error)
{
	struct coop_callers *users = call->user->users;

	if (users->closing) {
		destroy(call);
		return;
	}
	call->error = coop_mem_alloc(sizeof *call->error);
	if (call->error)
		*call->error = error && error->code[0] ? *error : no_memory;
	call->link = NULL;
	call->next = NULL;
	*users->failed_last = call;
	users->failed_last = &call->next;
	(void)uv_timer_start(&users->failing, on_failing, 0, 0);
}

static void submit(struct coop_user_call *call, struct coop_user_link *link)
{
	const struct coop_handler handler = {on_data, on_event, on_done, call};
	struct coop_error error = {0};

	if (call->dropped) { /* while it waited: nobody wants it any more */
		destroy(call);
		return;
	}
	int r = coop_link_submit(link, call->op, call->args, call->data, call->size, &handler,
				 &call->request, &error);

	free(call->args);
	free(call->data);
	call->args = NULL;
	call->data = NULL;
	call->link = link;
	if (r < 0)
		fail_later(call, &error);
}

static struct coop_user_link *link_with_room(const struct coop_user *user)
{
	for (unsigned i = 0; i < user->link_count; i++) {
		if (coop_link_has_room(user->links[i]))
			return user->links[i];
	}
	return NULL;
}

static struct coop_user_call *take_waiting(struct coop_user *user)
{
	struct coop_user_call *call = user->waiting;

	user->waiting = call->next;
	if (!user->waiting)
		user->waiting_last = &user->waiting;
	user->waiting_count--;
	call->next = NULL;
	return call;
}

void coop_user_pump(struct coop_user *user)
{
	struct coop_user_link *link;

	while (user->waiting && (link = link_with_room(user)))
		submit(take_waiting(user), link);
	if (user->waiting)
		(void)coop_user_want_link(user);
}

void coop_user_fail_waiting(struct coop_user *user, const struct coop_error *error)
{
	while (user->waiting)
		fail_later(take_waiting(user), error);
}

void coop_user_fail_calls(struct coop_user *user)
{
	static const struct coop_error stopping = {.code = "unreachable",
						   .message = "the gateway stops"};

	user->refs++;
	while (user->calls)
		on_done(user->calls, 0, -EPIPE, NULL, &stopping);
	user->refs--;
}

/* Copies what is needed until it is sent. */
static struct coop_user_call *make(struct coop_user *user, const char *op, json_t *args,
				   const void *data, size_t size,
				   const struct coop_handler *handler)
{
	struct coop_user_call *call = coop_mem_zalloc(sizeof *call);

	if (!call)
		return NULL;
	call->user = coop_user_ref(user);
	call->after = user->calls;
	call->before = &user->calls;
	if (call->after)
		call->after->before = &call->after;
	user->calls = call;
	call->handler = *handler;
	(void)strncat(call->op, op, sizeof call->op - 1);
	call->args = args ? json_dumps(args, JSON_COMPACT) : NULL;
	if (size && (call->data = coop_mem_alloc(size)))
		memcpy(call->data, data, size);
	call->size = size;
	if ((args && !call->args) || (size && !call->data)) {
		destroy(call);
		return NULL;
	}
	return call;
}

struct coop_user_call *coop_user_call(struct coop_user *user, const char *op, json_t *args,
				      const void *data, size_t size,
				      const struct coop_handler *handler)
{
	struct coop_error gone = {.code = "unreachable", .message = "the keeper cannot be reached"};
	struct coop_user_call *call =
		user->users->closing ? NULL : make(user, op, args, data, size, handler);
	struct coop_user_link *link = link_with_room(user);

	json_decref(args);
	if (!call)
		return NULL;
	if (link && !user->waiting) {
		submit(call, link);
		return call;
	}
	if (user->waiting_count >= COOP_USER_WAITING_MAX || coop_user_want_link(user) < 0) {
		fail_later(call, &gone);
		return call;
	}
	call->next = NULL;
	*user->waiting_last = call;
	user->waiting_last = &call->next;
	user->waiting_count++;
	return call;
}

void coop_user_drop(struct coop_user_call *call)
{
	if (!call)
		return;
	call->dropped = true;
	if (call->link)
		coop_link_cancel(call->link, call->request);
}
