#include "doors/http/users/user.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "doors/http/net/share.h"
#include "doors/http/users/link.h"
#include "doors/http/users/user_state.h"

struct coop_user *coop_user_new(struct coop_callers *users, const char *token)
{
	struct coop_user *user = coop_mem_zalloc(sizeof *user);
	char *copy = coop_mem_strdup(token);

	if (!user || !copy) {
		free(user);
		free(copy);
		return NULL;
	}
	user->users = users;
	user->token = copy;
	coop_list_init(&user->waiters);
	coop_list_init(&user->waiting);
	coop_list_init(&user->calls);
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
	for (unsigned i = 0; i < user->link_count; i++)
		coop_link_close(user->links[i]);
	OPENSSL_cleanse(user->token, strlen(user->token));
	free(user->token);
	free(user->agent);
	coop_share_unref(user->share);
	free(user);
}

bool coop_user_is_up(const struct coop_user *user)
{
	for (unsigned i = 0; i < user->link_count; i++) {
		if (coop_link_is_up(user->links[i]))
			return true;
	}
	return false;
}

int coop_user_want_link(struct coop_user *user)
{
	for (unsigned i = 0; i < user->link_count; i++) {
		if (!coop_link_is_up(user->links[i]))
			return 0;
	}
	if (user->link_count == COOP_USER_LINKS_MAX)
		return 0;
	struct coop_user_link *link = coop_link_open(user);
	if (!link)
		return -EPIPE;
	user->links[user->link_count++] = link;
	return 0;
}

void coop_user_link_up(struct coop_user *user)
{
	user->refs++; /* whoever waited may go on and end */
	coop_users_tell(user, 0);
	coop_user_unref(user);
}

void coop_user_link_down(struct coop_user *user, struct coop_user_link *link,
			 const struct coop_error *error)
{
	bool refused = !coop_link_is_up(link) && strcmp(error->code, "permission_denied") == 0;
	int status = refused ? -EACCES : strcmp(error->code, "quota") == 0 ? -EDQUOT : -EPIPE;

	for (unsigned i = 0; i < user->link_count; i++) {
		if (user->links[i] == link) {
			user->links[i] = user->links[--user->link_count];
			break;
		}
	}
	if (refused)
		coop_users_forget(user);
	user->refs++;
	if (refused || !coop_user_is_up(user)) {
		if (!coop_link_is_up(link) || refused)
			coop_users_tell(user, status);
		coop_user_fail_waiting(user, error);
	}
	coop_user_unref(user);
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
