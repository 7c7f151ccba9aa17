/* All who use the gateway, found by their tokens. The keeper says whether a token is good; whom it
 * has said that of is known until it takes it back, or for a while after the last use. */
#ifndef COOP_HTTP_USERS_H
#define COOP_HTTP_USERS_H

#include <stdbool.h>

#include "doors/tools/core/ceiling.h"

#define COOP_USERS_MAX 4096u
#define COOP_USER_IDLE_MS 60000u

struct coop_broker;
struct coop_callers;
struct coop_http_exchange;
struct coop_http_net;
struct coop_user;

struct coop_callers_options {
	struct coop_door_ceiling ceiling; /* the workspace is for the keeper's own user's main */
	bool bound; /* somebody said how processes are confined: nothing is wider than that */
	unsigned max_per_agent; /* connections of one agent's tokens with all below it */
	unsigned max_of_agents; /* of all agents but main of the keeper's own user */
};

/* The broker and the net must outlive it. NULL without memory. */
struct coop_callers *coop_users_new(struct coop_http_net *net, struct coop_broker *broker,
				    const struct coop_callers_options *options);
/* The gateway stops: what hangs on users is told (struct coop_user_kind). */
void coop_users_stop(struct coop_callers *users);
/* Ends every link. What still waits is told "unreachable". */
void coop_users_close(struct coop_callers *users);
void coop_users_free(struct coop_callers *users); /* NULL is fine */

/* Whether the last attempt to reach the keeper failed. */
bool coop_users_keeper_gone(const struct coop_callers *users);
/* Whether a token is known without asking. */
bool coop_users_knows(const struct coop_callers *users, const char *token);

/* Calls `done` with the user of a token, or NULL and a negative errno; at once if it is known, else
 * when the keeper has answered. Meanwhile the exchange has its `waiter`. */
typedef void coop_user_done(struct coop_http_exchange *exchange, struct coop_user *user,
			    int status);
void coop_users_find(struct coop_callers *users, const char *token,
		     struct coop_http_exchange *exchange, coop_user_done *done);
/* The exchange waits no more, if it did. */
void coop_users_wait_stop(struct coop_http_exchange *exchange);

/* Makes the exchange and its connection the user's. -EMFILE: its agent has as many connections as
 * it may. */
int coop_users_enter(struct coop_user *user, struct coop_http_exchange *exchange);

#endif
