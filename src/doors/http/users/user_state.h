/* Users, their links and their calls from within: what the files of this room share. */
#ifndef COOP_HTTP_USER_STATE_H
#define COOP_HTTP_USER_STATE_H

#include <uv.h>

#include "base/list.h"
#include "base/map.h"
#include "doors/http/net/failures.h"
#include "doors/http/net/share.h"
#include "doors/http/users/user.h"
#include "doors/http/users/users.h"

#define COOP_USER_DIGEST 32u /* SHA-256 of the token */
#define COOP_USER_LINKS_MAX 32u
/* Calls that wait for a connection to the keeper. */
#define COOP_USER_WAITING_MAX 4096u

struct coop_broker;
struct coop_user_link;

struct coop_callers {
	struct coop_http_net *net;
	struct coop_broker *broker;
	struct coop_callers_options options;
	struct coop_map by_digest;
	struct coop_link all; /* newest first */
	struct coop_agent_shares shares;
	struct coop_failures failures;
	unsigned count;   /* of those in the table */
	bool keeper_gone; /* the last attempt to reach it failed */
	bool closing;
	uv_timer_t sweep; /* runs while there are idle ones */
};

struct coop_user {
	struct coop_callers *users;
	struct coop_link link; /* among all */
	unsigned refs;
	bool known; /* in the table */
	uint8_t digest[COOP_USER_DIGEST];
	char *token, *agent; /* agent NULL: it never was valid */
	/* that its connections count against; there is one with an agent */
	struct coop_agent_share *share;
	struct coop_user_link *links[COOP_USER_LINKS_MAX];
	unsigned link_count;
	struct coop_link waiters;
	struct coop_link waiting; /* calls, for a link with room */
	unsigned waiting_count;
	struct coop_link calls; /* all that have not been answered */
	struct coop_link extras;
	uint64_t idle_since;
};

/* NULL without memory. It is in no table yet. */
struct coop_user *coop_user_new(struct coop_callers *users, const char *token);
void coop_user_free(struct coop_user *user);
/* Whether one of its links is up. */
bool coop_user_is_up(const struct coop_user *user);
/* One more link, unless one is on its way or there are enough. 0 or -EPIPE. */
int coop_user_want_link(struct coop_user *user);

/* Those that hang on it are told that the gateway stops. */
void coop_user_stop_extras(struct coop_user *user);

/* users.c: somebody has let go of the last that held it. */
void coop_users_idle(struct coop_user *user);
/* Out of the table: the next with that token is looked at anew. */
void coop_users_forget(struct coop_user *user);
/* Those who wait to hear of its token hear it: 0, or why not. */
void coop_users_tell(struct coop_user *user, int status);

/* call.c: sends calls that wait, now that there may be room. */
void coop_user_pump(struct coop_user *user);
/* Everything that waits for a link fails. */
void coop_user_fail_waiting(struct coop_user *user, const struct coop_error *error);
/* Tells all that was asked for that nothing will come of it, at the end of everything. */
void coop_user_fail_calls(struct coop_user *user);

/* For links: who the keeper says that it is. */
void coop_user_named(struct coop_user *user, const char *principal, const char *agent);
void coop_user_link_up(struct coop_user *user);
/* It ended, or never came to be: code and words. */
void coop_user_link_down(struct coop_user *user, struct coop_user_link *link,
			 const struct coop_error *error);

#endif
