#include "doors/http/users/link.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "client/loop/uplink.h"
#include "coop.h"
#include "doors/http/net/net.h"
#include "doors/http/users/broker.h"
#include "doors/http/users/user.h"
#include "doors/http/users/user_state.h"
#include "doors/tools/core/ceiling.h"

struct coop_user_link {
	struct coop_user *user;     /* NULL: given up */
	struct coop_uplink *uplink; /* NULL: the broker has not answered */
	bool up, refused;
	struct coop_error error; /* why it was refused */
};

static void on_closed(void *context)
{
	free(context);
}

void coop_link_close(struct coop_user_link *link)
{
	link->user = NULL;
	if (link->uplink) /* else the broker's answer ends it */
		coop_uplink_close(link->uplink);
}

static void fail(struct coop_user_link *link, const struct coop_error *error)
{
	struct coop_user *user = link->user;

	coop_link_close(link);
	coop_user_link_failed(user, error);
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

static void on_turned(void *context, struct coop_uplink *uplink, const struct coop_error *ended)
{
	struct coop_user_link *link = context;
	struct coop_user *user = link->user;

	if (link->refused || ended) {
		fail(link, link->refused ? &link->error : ended);
	} else if (link->up) {
		free(link);
		coop_user_link_up(user, uplink);
	}
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
	int r = text ? coop_uplink_submit(link->uplink, COOP_CEILING_OP, text, NULL, 0, &handler,
					  &request, error)
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
	int r = text ? coop_uplink_submit(link->uplink, "login", text, NULL, 0, &handler, &request,
					  error)
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
	static const struct coop_error gone = {.code = "unreachable",
					       .message = "the keeper cannot be reached"};
	struct coop_user_link *link = context;
	struct coop_user *user = link->user;
	const struct coop_uplink_owner owner = {on_turned, on_closed, link};
	struct coop *coop;

	if (user)
		user->users->keeper_gone = fd < 0;
	if (!user || fd < 0 || coop_open_fd(fd, &coop, NULL) < 0) {
		if (fd >= 0)
			(void)close(fd);
	} else if (coop_uplink_new(coop_user_net(user)->loop, coop, &owner, &link->uplink) == 0) {
		if (login(link, NULL) < 0)
			fail(link, &gone);
		return;
	}
	free(link);
	if (user)
		coop_user_link_failed(user, &gone);
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
