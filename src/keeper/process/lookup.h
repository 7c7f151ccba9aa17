/* What an `id` argument means: an id, an alias behind "alias:", a process number behind "pid:", a
 * tag, or a beginning of an id, among what the caller may see. */
#ifndef COOP_KEEPER_LOOKUP_H
#define COOP_KEEPER_LOOKUP_H

#include <stdint.h>

#include "interface/err.h"

#define COOP_LOOKUP_ALIAS "alias:"
#define COOP_LOOKUP_PID "pid:"

struct coop_agent;
struct coop_process;
struct coop_request;

/* NULL with the error filled. What the viewer may not see is as what is not there: the same checks,
 * the same words. */
struct coop_process *coop_lookup(const struct coop_agent *viewer, const char *text,
				 struct coop_err *err);

/* The number in an id, psh-<pid hex>-<n>; 0 if it does not look like one. */
uint64_t coop_lookup_number(const char *text);

/* Whether the caller owns it: 0, or the error filled (not_owner). */
int coop_lookup_owned(const struct coop_request *request, const struct coop_process *process,
		      struct coop_err *err);

/* Finds the process that the `id` argument names, and that the operation's right allows to the
 * caller; answers the request with the error if there is none: it is gone then, with its arguments.
 * A call of the owner restarts the idle clock. */
struct coop_process *coop_lookup_named(struct coop_request *request);

#endif
