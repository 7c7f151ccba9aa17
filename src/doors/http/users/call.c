#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/later.h"
#include "base/list.h"
#include "base/mem.h"
#include "doors/http/net/net.h"
#include "doors/http/users/link.h"
#include "doors/http/users/user.h"
#include "doors/http/users/user_state.h"

struct coop_user_call {
	struct coop_user *user;
	struct coop_link link; /* among all of the user */
	struct coop_handler handler;
	bool dropped;
	/* On its way. */
	struct coop_user_link *carrier;
	uint64_t request;
	/* Until it is. */
	struct coop_link queue; /* of those that wait for a link */
	char op[32];
	char *args;
	void *data;
	size_t size;
	struct coop_later failing; /* tells that it failed, never from within a call */
	struct coop_error *error;  /* why */
};

static void destroy(struct coop_user_call *call)
{
	struct coop_user *user = call->user;

	coop_list_remove(&call->link);
	coop_list_remove(&call->queue);
	coop_later_cancel(&call->failing);
	free(call->args);
	free(call->data);
	free(call->error);
	free(call);
	coop_user_unref(user);
}

static void on_data(void *context, uint64_t request, const struct coop_chunk *chunk)
{
	struct coop_user_call *call = context;

	if (!call->dropped && call->handler.data)
		call->handler.data(call->handler.user, 0, chunk);
}

static void on_event(void *context, uint64_t request, const char *json)
{
	struct coop_user_call *call = context;

	if (!call->dropped && call->handler.event)
		call->handler.event(call->handler.user, 0, json);
}

static void on_done(void *context, uint64_t request, int status, const char *json,
		    const struct coop_error *error)
{
	struct coop_user_call *call = context;
	bool dropped = call->dropped;

	call->dropped = true; /* it is over, whatever is done to it from there */
	call->carrier = NULL;
	if (!dropped && call->handler.done)
		call->handler.done(call->handler.user, 0, status, json, error);
	destroy(call);
}

static const struct coop_error no_memory = {.code = "internal", .message = "out of memory"};

static struct coop_user_call *queued(struct coop_link *link)
{
	return COOP_LIST_ITEM(link, struct coop_user_call, queue);
}

static void on_failing(struct coop_later *item)
{
	struct coop_user_call *call = COOP_LATER_OWNER(item, struct coop_user_call, failing);

	on_done(call, 0, -EREMOTEIO, NULL, call->error ? call->error : &no_memory);
}

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
	call->carrier = NULL;
	coop_later(&users->net->laters, &call->failing);
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
	call->carrier = link;
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
	struct coop_user_call *call = queued(user->waiting.next);

	coop_list_remove(&call->queue);
	user->waiting_count--;
	return call;
}

void coop_user_pump(struct coop_user *user)
{
	struct coop_user_link *link;

	while (!coop_list_empty(&user->waiting) && (link = link_with_room(user)))
		submit(take_waiting(user), link);
	if (!coop_list_empty(&user->waiting))
		(void)coop_user_want_link(user);
}

void coop_user_fail_waiting(struct coop_user *user, const struct coop_error *error)
{
	while (!coop_list_empty(&user->waiting))
		fail_later(take_waiting(user), error);
}

void coop_user_fail_calls(struct coop_user *user)
{
	static const struct coop_error stopping = {.code = "unreachable",
						   .message = "the gateway stops"};

	user->refs++;
	while (!coop_list_empty(&user->calls))
		on_done(COOP_LIST_ITEM(user->calls.next, struct coop_user_call, link), 0, -EPIPE,
			NULL, &stopping);
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
	coop_list_push(&user->calls, &call->link);
	call->failing.run = on_failing;
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
	if (link && coop_list_empty(&user->waiting)) {
		submit(call, link);
		return call;
	}
	if (user->waiting_count >= COOP_USER_WAITING_MAX || coop_user_want_link(user) < 0) {
		fail_later(call, &gone);
		return call;
	}
	coop_list_add(&user->waiting, &call->queue);
	user->waiting_count++;
	return call;
}

void coop_user_drop(struct coop_user_call *call)
{
	if (!call)
		return;
	call->dropped = true;
	if (call->carrier)
		coop_link_cancel(call->carrier, call->request);
}
