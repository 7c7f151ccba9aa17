/* Who a request comes from: a token that the keeper has taken, and the connections to the keeper
 * that act for it. The gateway has no rights but these. A user is valid as long as the keeper keeps
 * one of its connections: it ends them when a token is revoked or expires. */
#ifndef COOP_HTTP_USER_H
#define COOP_HTTP_USER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "coop.h"
#include "doors/tools/core/ceiling.h"

struct coop_http_net;
struct coop_user;

struct coop_user *coop_user_ref(struct coop_user *user);
void coop_user_unref(struct coop_user *user); /* NULL is fine */

/* The agent's path as the keeper names it ("main/tester"). */
const char *coop_user_agent(const struct coop_user *user);
/* Whether it is main of the user whose keeper this is; other principals have a main as well. */
bool coop_user_is_own(const struct coop_user *user);
/* What the gateway was told of how processes are confined. The workspace is for the user's own
 * processes: other agents have theirs. */
struct coop_door_ceiling coop_user_ceiling(const struct coop_user *user);
struct coop_http_net *coop_user_net(const struct coop_user *user);

/* One operation asked of the keeper. */
struct coop_call;

/* Asks for an operation; `args` (may be NULL) is taken over in every case, `data` is copied. The
 * handler's functions are called later, never from here, with `request` 0, and its `done` exactly
 * once, unless the call was dropped. NULL without memory: `done` is not called then. Where there is
 * no connection to the keeper one is made first; done then comes with code "unreachable" if that
 * fails and with "permission_denied" if the token is not valid any more. */
struct coop_call *coop_user_call(struct coop_user *user, const char *op, json_t *args,
				 const void *data, size_t size, const struct coop_handler *handler);
/* Forgets the call: its handler is not called any more, the keeper is asked to give up what waits.
 * Not from within its own `done`, and not after it. NULL is fine. */
void coop_user_drop(struct coop_call *call);

/* Input for processes that waits in the gateway, of all clients of its share (share.h) together:
 * who adds to it stops at the bound. */
#define COOP_USER_INPUT_MAX (128u << 20)
size_t *coop_user_input(struct coop_user *user);

/* What a room above keeps for a user (its file helper, its feeds), at the front of a struct of its
 * own, which knows the user. There is one of a kind. */
struct coop_user_extra {
	const struct coop_user_kind *kind;
	struct coop_link link;
};

struct coop_user_kind {
	/* The user goes, and this with it. */
	void (*release)(struct coop_user_extra *extra);
	/* The gateway stops. May be NULL. */
	void (*stop)(struct coop_user_extra *extra);
};

/* NULL: there is none. */
struct coop_user_extra *coop_user_extra(const struct coop_user *user,
					const struct coop_user_kind *kind);
void coop_user_hang(struct coop_user *user, const struct coop_user_kind *kind,
		    struct coop_user_extra *extra);

#endif
