#include "doors/http/users/user.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "client/loop/calls.h"
#include "doors/http/net/net.h"
#include "doors/http/net/share.h"
#include "doors/http/users/link.h"
#include "doors/http/users/user_state.h"

/* Connections of one user, and calls that one of them carries at a time; the keeper takes 256. */
#define UPLINKS_MAX COOP_CALLS_UPLINKS_MAX
#define OPEN_MAX 200u
/* Calls that wait for a connection to the keeper. */
#define WAITING_MAX 4096u

static const struct coop_error gone = {.code = "unreachable",
				       .message = "the keeper cannot be reached"};

static bool want(void *context, struct coop_error *error)
{
	*error = gone;
	return coop_user_want_link(context) == 0;
}

static void on_lost(void *context, const struct coop_error *error)
{
	struct coop_user *user = context;

	if (!coop_user_is_up(user))
		coop_calls_fail(user->calls, error);
}

/* What has been asked for holds the user. */
static void on_held(void *context, bool any)
{
	if (any)
		(void)coop_user_ref(context);
	else
		coop_user_unref(context);
}

struct coop_user *coop_user_new(struct coop_callers *users, const char *token)
{
	struct coop_user *user = coop_mem_zalloc(sizeof *user);
	char *copy = coop_mem_strdup(token);
	const struct coop_calls_options options = {.open_max = OPEN_MAX,
						   .standing_max = OPEN_MAX,
						   .waiting_max = WAITING_MAX,
						   .want = want,
						   .lost = on_lost,
						   .held = on_held,
						   .user = user};

	if (!user || !copy || !(user->calls = coop_calls_new(users->net->loop, &options))) {
		free(user);
		free(copy);
		return NULL;
	}
	user->users = users;
	user->token = copy;
	coop_list_init(&user->waiters);
	coop_list_init(&user->extras);
	return user;
}

static struct coop_user_extra *extra_of(struct coop_link *link)
{
	return COOP_LIST_ITEM(link, struct coop_user_extra, link);
}

void coop_user_free(struct coop_user *user)
{
	while (!coop_list_empty(&user->extras)) {
		struct coop_user_extra *extra = extra_of(user->extras.next);
		coop_list_remove(&extra->link);
		extra->kind->release(extra);
	}
	if (user->opening)
		coop_link_close(user->opening);
	coop_user_fail_calls(user);
	OPENSSL_cleanse(user->token, strlen(user->token));
	free(user->token);
	free(user->agent);
	coop_share_unref(user->share);
	free(user);
}

bool coop_user_is_up(const struct coop_user *user)
{
	return user->calls && coop_calls_uplinks(user->calls) > 0;
}

int coop_user_want_link(struct coop_user *user)
{
	if (!user->calls)
		return -EPIPE;
	if (user->opening || coop_calls_uplinks(user->calls) == UPLINKS_MAX)
		return 0;
	user->opening = coop_link_open(user);
	return user->opening ? 0 : -EPIPE;
}

void coop_user_link_up(struct coop_user *user, struct coop_uplink *uplink)
{
	user->opening = NULL;
	user->refs++; /* whoever waited may go on and end */
	(void)coop_calls_add(user->calls, uplink);
	coop_users_tell(user, 0);
	coop_user_unref(user);
}

void coop_user_link_failed(struct coop_user *user, const struct coop_error *error)
{
	bool refused = strcmp(error->code, "permission_denied") == 0;
	int status = refused ? -EACCES : strcmp(error->code, "quota") == 0 ? -EDQUOT : -EPIPE;

	user->opening = NULL;
	if (refused)
		coop_users_forget(user);
	user->refs++;
	if (refused || !coop_user_is_up(user)) {
		coop_users_tell(user, status);
		coop_calls_fail(user->calls, error);
	}
	coop_user_unref(user);
}

struct coop_call *coop_user_call(struct coop_user *user, const char *op, json_t *args,
				 const void *data, size_t size, const struct coop_handler *handler)
{
	if (user->calls)
		return coop_calls_begin(user->calls, op, args, data, size, handler);
	json_decref(args);
	return NULL;
}

void coop_user_drop(struct coop_call *call)
{
	coop_calls_drop(call);
}

void coop_user_fail_calls(struct coop_user *user)
{
	static const struct coop_error stopping = {.code = "unreachable",
						   .message = "the gateway stops"};
	struct coop_calls *calls = user->calls;

	user->calls = NULL;
	if (calls)
		coop_calls_close(calls, &stopping, NULL, NULL);
}

struct coop_user *coop_user_ref(struct coop_user *user)
{
	user->refs++;
	return user;
}

void coop_user_unref(struct coop_user *user)
{
	if (user && --user->refs == 0)
		coop_users_idle(user);
}

/* Who sends input has a connection, and with that a share. */
size_t *coop_user_input(struct coop_user *user)
{
	return &user->share->input;
}

struct coop_http_net *coop_user_net(const struct coop_user *user)
{
	return user->users->net;
}

const char *coop_user_agent(const struct coop_user *user)
{
	return user->agent ? user->agent : "";
}

bool coop_user_is_own(const struct coop_user *user)
{
	return user->share && user->share->own;
}

struct coop_door_ceiling coop_user_ceiling(const struct coop_user *user)
{
	struct coop_door_ceiling ceiling = user->users->options.ceiling;

	if (!coop_user_is_own(user)) {
		ceiling.workspace = NULL;
		ceiling.no_workspace = false;
	}
	return ceiling;
}

void coop_user_named(struct coop_user *user, const char *principal, const char *agent)
{
	if (user->agent)
		return;
	user->share =
		coop_share_of(&user->users->shares, principal ? principal : "", agent ? agent : "");
	user->agent = user->share ? coop_mem_strdup(agent ? agent : "") : NULL;
}

struct coop_user_extra *coop_user_extra(const struct coop_user *user,
					const struct coop_user_kind *kind)
{
	COOP_LIST_EACH(&user->extras, link)
	{
		if (extra_of(link)->kind == kind)
			return extra_of(link);
	}
	return NULL;
}

void coop_user_hang(struct coop_user *user, const struct coop_user_kind *kind,
		    struct coop_user_extra *extra)
{
	extra->kind = kind;
	coop_list_add(&user->extras, &extra->link);
}

void coop_user_stop_extras(struct coop_user *user)
{
	COOP_LIST_EACH(&user->extras, link)
	{
		struct coop_user_extra *extra = extra_of(link);
		if (extra->kind->stop)
			extra->kind->stop(extra);
	}
}
