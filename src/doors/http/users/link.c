#include "doors/http/users/link.h"

#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/mem.h"
#include "doors/http/net/net.h"
#include "doors/http/users/broker.h"
#include "doors/http/users/user.h"
#include "doors/http/users/user_state.h"
#include "doors/tools/core/ceiling.h"

struct coop_user_link {
	struct coop_user *user; /* NULL: closed while the broker was asked */
	struct coop *coop;
	uv_poll_t poll;
	int watched;
	bool up, refused, closed, dispatching;
	struct coop_error error; /* why it was refused */
};

static void on_poll(uv_poll_t *poll, int status, int events);

static void watch(struct coop_user_link *link)
{
	short wanted = coop_poll_events(link->coop);
	int events = (wanted & POLLIN ? UV_READABLE : 0) | (wanted & POLLOUT ? UV_WRITABLE : 0);

	if (link->closed || events == link->watched)
		return;
	link->watched = events;
	(void)uv_poll_start(&link->poll, events, on_poll);
}

static void on_closed(uv_handle_t *handle)
{
	struct coop_user_link *link = handle->data;

	coop_close(link->coop);
	free(link);
}

void coop_link_close(struct coop_user_link *link)
{
	link->user = NULL;
	if (!link->coop || link->closed)
		return; /* the broker's answer ends it */
	link->closed = true;
	uv_close((uv_handle_t *)&link->poll, on_closed);
}

static void fail(struct coop_user_link *link, const struct coop_error *error)
{
	struct coop_user *user = link->user;

	if (user)
		coop_user_link_down(user, link, error);
	coop_link_close(link);
}

static int bound(struct coop_user_link *link, struct coop_error *error);

static void on_bound(void *context, uint64_t request, int status, const char *json,
		     const struct coop_error *error)
{
	struct coop_user_link *link = context;

	link->up = status >= 0;
	link->refused = status < 0;
	if (status < 0)
		link->error = *error;
}

static void on_login(void *context, uint64_t request, int status, const char *json,
		     const struct coop_error *error)
{
	struct coop_user_link *link = context;

	if (status < 0) {
		link->refused = true;
		link->error = *error;
		return;
	}
	json_t *result = json_loads(json, 0, NULL);
	if (link->user)
		coop_user_named(link->user, json_string_value(json_object_get(result, "principal")),
				json_string_value(json_object_get(result, "agent")));
	json_decref(result);
	link->refused = link->user && bound(link, &link->error) < 0;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct coop_user_link *link = poll->data;
	struct coop_error error = {0};
	bool was_up = link->up;

	if (link->closed)
		return;
	/* After an error libuv looks no more; what had come before it is still there, and then the
	 * end. */
	if (status < 0)
		link->watched = 0;
	link->dispatching = true;
	int r = coop_dispatch(link->coop, &error);
	link->dispatching = false;
	if (link->closed)
		return;
	if (link->refused)
		fail(link, &link->error);
	else if (r < 0)
		fail(link, &error);
	if (link->closed)
		return;
	if (link->up && link->user) {
		if (!was_up)
			coop_user_link_up(link->user);
		coop_user_pump(link->user);
	}
	watch(link);
}

/* Nothing is asked for on a link before the keeper knows what the gateway was configured with. */
static int bound(struct coop_user_link *link, struct coop_error *error)
{
	const struct coop_handler handler = {.done = on_bound, .user = link};
	const struct coop_door_ceiling ceiling = coop_user_ceiling(link->user);
	uint64_t request;

	link->up = !link->user->users->options.bound ||
		   (!coop_user_is_own(link->user) && !ceiling.profile);
	if (link->up)
		return 0;
	json_t *args = coop_door_ceiling_args(&ceiling);
	char *text = args ? json_dumps(args, JSON_COMPACT) : NULL;
	int r = text ? coop_submit(link->coop, COOP_CEILING_OP, text, NULL, 0, &handler, &request,
				   error)
		     : -ENOMEM;
	free(text);
	json_decref(args);
	return r;
}

static int login(struct coop_user_link *link, struct coop_error *error)
{
	struct coop_handler handler = {.done = on_login, .user = link};
	json_t *args = json_pack("{s:s}", "token", link->user->token);
	char *text = args ? json_dumps(args, JSON_COMPACT) : NULL;
	uint64_t request;
	int r = text ? coop_submit(link->coop, "login", text, NULL, 0, &handler, &request, error)
		     : -ENOMEM;

	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
	json_decref(args);
	return r;
}

/* The broker's answer: a connection, or why there is none. */
static void on_connection(void *context, int fd)
{
	struct coop_user_link *link = context;
	struct coop_error error = {.code = "unreachable",
				   .message = "the keeper cannot be reached"};

	if (link->user)
		link->user->users->keeper_gone = fd < 0;
	if (!link->user || fd < 0 || coop_open_fd(fd, &link->coop, NULL) < 0) {
		if (fd >= 0)
			(void)close(fd);
		if (link->user)
			coop_user_link_down(link->user, link, &error);
		free(link);
		return;
	}
	if (uv_poll_init(coop_user_net(link->user)->loop, &link->poll, coop_fd(link->coop)) < 0) {
		coop_user_link_down(link->user, link, &error);
		coop_close(link->coop);
		free(link);
		return;
	}
	link->poll.data = link;
	if (login(link, NULL) < 0)
		fail(link, &error);
	else
		watch(link);
}

struct coop_user_link *coop_link_open(struct coop_user *user)
{
	struct coop_user_link *link = coop_mem_zalloc(sizeof *link);

	if (!link)
		return NULL;
	link->user = user;
	if (coop_broker_ask(user->users->broker, on_connection, link) < 0) {
		free(link);
		return NULL;
	}
	return link;
}

bool coop_link_is_up(const struct coop_user_link *link)
{
	return link->up;
}

bool coop_link_has_room(const struct coop_user_link *link)
{
	return link->up && coop_pending(link->coop) < COOP_LINK_CALLS;
}

int coop_link_submit(struct coop_user_link *link, const char *op, const char *args,
		     const void *data, size_t size, const struct coop_handler *handler,
		     uint64_t *ret_request, struct coop_error *error)
{
	int r = coop_submit(link->coop, op, args, data, size, handler, ret_request, error);

	if (!link->dispatching)
		watch(link);
	return r;
}

void coop_link_cancel(struct coop_user_link *link, uint64_t request)
{
	(void)coop_cancel(link->coop, request);
	if (!link->dispatching)
		watch(link);
}
