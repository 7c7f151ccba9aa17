/* One connection to the keeper on libuv's loop: it is watched for what libcoop wants of it, and
 * dispatched. */
#ifndef COOP_LOOP_UPLINK_H
#define COOP_LOOP_UPLINK_H

#include <stdbool.h>
#include <uv.h>

#include "coop.h"

struct coop_uplink;

/* What its owner hears, on the loop. */
struct coop_uplink_owner {
	/* All that came has been told to its handlers, and there may be room for more. `ended`:
	 * nothing comes any more, and what was open has been told so; the owner closes it. Else
	 * NULL. Not called from within any function of this header. */
	void (*turned)(void *user, struct coop_uplink *uplink, const struct coop_error *ended);
	/* After coop_uplink_close(): nothing of it is left on the loop. May be NULL. */
	void (*closed)(void *user);
	void *user;
};

/* Takes `coop` over in every case. 0; -ENOMEM, or what libuv says. */
int coop_uplink_new(uv_loop_t *loop, struct coop *coop, const struct coop_uplink_owner *owner,
		    struct coop_uplink **ret);
/* It is another owner's from now on. */
void coop_uplink_give(struct coop_uplink *uplink, const struct coop_uplink_owner *owner);
/* Ends it in a later turn of the loop. What is open on it is not told; nothing may be submitted or
 * cancelled afterwards. */
void coop_uplink_close(struct coop_uplink *uplink);

/* Requests that are open on it. */
size_t coop_uplink_pending(const struct coop_uplink *uplink);
/* Whether it takes requests; what it has said may still be on its way when it does not any more. */
bool coop_uplink_takes(const struct coop_uplink *uplink);
/* As coop_submit() and coop_cancel(). */
int coop_uplink_submit(struct coop_uplink *uplink, const char *op, const char *args,
		       const void *data, size_t size, const struct coop_handler *handler,
		       uint64_t *ret_request, struct coop_error *error);
void coop_uplink_cancel(struct coop_uplink *uplink, uint64_t request);

/* For blocking calls before the loop runs. */
struct coop *coop_uplink_coop(const struct coop_uplink *uplink);

#endif
