/* Calls of the keeper's operations on as many connections as they need. A call waits until one has
 * room, is told its end exactly once, later, and may be given up at any time. */
#ifndef COOP_LOOP_CALLS_H
#define COOP_LOOP_CALLS_H

#include <jansson.h>
#include <stdbool.h>
#include <uv.h>

#include "client/loop/uplink.h"

/* Connections of one set at most. */
#define COOP_CALLS_UPLINKS_MAX 32u

struct coop_calls_options {
	unsigned open_max; /* calls that one connection carries at a time; the keeper takes 256 */
	/* With fewer it takes those that may wait as long as they like, too: they must not take the
	 * room of those that only ask. */
	unsigned standing_max;
	unsigned waiting_max; /* calls that wait for room */
	/* A call finds no room: asks for another connection, which is given to coop_calls_add()
	 * later, or coop_calls_fail() says why there is none. Whether one is on its way; if not,
	 * and there is none at all, *error says why. */
	bool (*want)(void *user, struct coop_error *error);
	/* A connection has ended. NULL: nobody needs to know. */
	void (*lost)(void *user, const struct coop_error *error);
	/* There are open calls from now on, or none any more. The last that is done with a call.
	 * NULL likewise. */
	void (*held)(void *user, bool any);
	void *user;
};

struct coop_calls;
struct coop_call;

/* NULL without memory. */
struct coop_calls *coop_calls_new(uv_loop_t *loop, const struct coop_calls_options *options);
/* Ends all connections and tells all calls that are still open why nothing comes. `closed` (may be
 * NULL) is called in a later turn of the loop, when nothing is left; nothing else is called any
 * more. */
void coop_calls_close(struct coop_calls *calls, const struct coop_error *why,
		      void (*closed)(void *user), void *user);

/* The connection takes calls from now on, and is theirs in every case. -EMFILE: there are
 * COOP_CALLS_UPLINKS_MAX. */
int coop_calls_add(struct coop_calls *calls, struct coop_uplink *uplink);
unsigned coop_calls_uplinks(const struct coop_calls *calls);
/* The oldest, for blocking calls before the loop runs; NULL: there is none. */
struct coop *coop_calls_first(const struct coop_calls *calls);
/* All that waits for a connection is told that none can be had. */
void coop_calls_fail(struct coop_calls *calls, const struct coop_error *error);

/* `args` (NULL: none) is taken over in every case, `data` copied. The handler is called later,
 * never from here, and its `done` exactly once unless the call is dropped. NULL without memory. */
struct coop_call *coop_calls_begin(struct coop_calls *calls, const char *op, json_t *args,
				   const void *data, size_t size,
				   const struct coop_handler *handler);
/* Gives it up: the handler is not called any more. Not after `done`; NULL is fine. */
void coop_calls_drop(struct coop_call *call);

#endif
