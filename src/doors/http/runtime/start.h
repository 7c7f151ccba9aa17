/* Starting a process as the gateway was told to: in its profile and workspace. */
#ifndef COOP_HTTP_START_H
#define COOP_HTTP_START_H

#include <jansson.h>

#include "coop.h"
#include "doors/http/users/user.h"

/* One of them is called, later and once. What they are given is valid until they return. */
struct coop_start_handler {
	/* There is one; its record is NULL without memory. `hold` is the right to be waited for, if
	 * the arguments asked for it. */
	void (*started)(void *context, const json_t *record, const json_t *hold);
	/* There is no process. The record is the keeper's of the attempt; NULL: it has none. */
	void (*failed)(void *context, const struct coop_error *error, const json_t *record);
	void *context;
};

/* Asks the keeper for a process. The arguments of `spawn` get the sandbox, and are held no longer
 * than until the answer. A start goes on although whoever wanted it has gone. 0, or -ENOMEM: no
 * function is called. */
int coop_start(struct coop_user *user, json_t *args, const struct coop_start_handler *handler);

#endif
