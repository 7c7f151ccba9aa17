/* Users, their links and their calls from within: shared by user.c and call.c alone. */
#ifndef COOP_HTTP_CALL_H
#define COOP_HTTP_CALL_H

#include <uv.h>

#include "base/map.h"
#include "doors/http/net/share.h"
#include "doors/http/users/user_private.h"

struct coop_callers {
	struct coop_gateway *gateway;
	struct coop_map by_digest;
	struct coop_user *first;
	struct coop_agent_shares shares;
	unsigned count; /* of those in the table */
	bool closing;
	uv_timer_t sweep;   /* runs while there are idle ones */
	uv_timer_t failing; /* runs while there are calls to be told of a failure */
	struct coop_user_call *failed, **failed_last;
};

struct coop_user {
	struct coop_callers *users;
	struct coop_user *next, **link;
	unsigned refs;
	bool known; /* in the table */
	uint8_t digest[COOP_USER_DIGEST];
	char *token, *agent; /* agent NULL: it never was valid */
	/* that its connections count against; there is one with an agent */
	struct coop_agent_share *share;
	struct coop_user_link *links[COOP_USER_LINKS_MAX];
	unsigned link_count;
	struct coop_user_waiter *waiters;
	struct coop_user_call *waiting, **waiting_last; /* for a link with room */
	unsigned waiting_count;
	struct coop_user_call *calls; /* all that have not been answered */
	uint64_t idle_since;
	struct {
		void *value;
		void (*free_value)(void *value);
	} slots[COOP_USER_SLOT_COUNT];
};

struct coop_user_waiter {
	struct coop_user_waiter *next, **link;
	struct coop_http_conn *conn;
	coop_user_done *done;
};

/* Everything that waits for a link fails. */
void coop_user_fail_waiting(struct coop_user *user, const struct coop_error *error);
/* Tells all that was asked for that nothing will come of it, at the end of everything. */
void coop_user_fail_calls(struct coop_user *user);
/* As coop_link_open(), unless one is on its way already. */
int coop_user_want_link(struct coop_user *user);

#endif
