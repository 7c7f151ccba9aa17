/* Who a request comes from: a token that the keeper has taken, and the connections to the keeper
 * that act for it. The gateway has no rights but these. A user is valid as long as the keeper keeps
 * one of its connections: it ends them when a token is revoked or expires. */
#ifndef COOP_HTTP_USER_H
#define COOP_HTTP_USER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coop.h"

struct coop_gateway;
struct coop_user;

struct coop_user *coop_user_ref(struct coop_user *user);
void coop_user_unref(struct coop_user *user); /* NULL is fine */

/* The agent's path as the keeper names it ("main/tester"). */
const char *coop_user_agent(const struct coop_user *user);
/* Whether it is main of the user whose keeper this is; other principals have a main as well. */
bool coop_user_is_own(const struct coop_user *user);

/* One operation asked of the keeper. */
struct coop_user_call;

/* Asks for an operation; `args` (may be NULL) is taken over in every case, `data` is copied. The
 * handler's functions are called later, never from here, with `request` 0, and its `done` exactly
 * once, unless the call was dropped. NULL without memory: `done` is not called then. Where there is
 * no connection to the keeper one is made first; done then comes with code "unreachable" if that
 * fails and with "permission_denied" if the token is not valid any more. */
struct coop_user_call *coop_user_call(struct coop_user *user, const char *op, json_t *args,
				      const void *data, size_t size,
				      const struct coop_handler *handler);
/* Forgets the call: its handler is not called any more, the keeper is asked to give up what waits.
 * Not from within its own `done`, and not after it. NULL is fine. */
void coop_user_drop(struct coop_user_call *call);

/* Input for processes that waits in the gateway, of all clients of its share (share.h) together:
 * who adds to it stops at the bound. */
#define COOP_USER_INPUT_MAX (128u << 20)
size_t coop_user_input(const struct coop_user *user);
void coop_user_input_more(struct coop_user *user, size_t bytes);
void coop_user_input_less(struct coop_user *user, size_t bytes);

/* What modules of routes keep for a user (its file helper); freed with the user by the function
 * given. One value a slot. */
enum coop_user_slot { COOP_USER_FILES, COOP_USER_FEEDS, COOP_USER_MCP, COOP_USER_SLOT_COUNT };
void *coop_user_get(const struct coop_user *user, enum coop_user_slot slot);
void coop_user_set(struct coop_user *user, enum coop_user_slot slot, void *value,
		   void (*free_value)(void *value));

#endif
