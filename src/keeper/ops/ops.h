/* How the operations are carried out: who handles each row of the interface. */
#ifndef COOP_KEEPER_OPS_H
#define COOP_KEEPER_OPS_H

#include <stddef.h>

#include "interface/err.h"
#include "interface/operations.h"

struct coop_keeper;
struct coop_process;
struct coop_request;

enum coop_op_trait {
	COOP_OP_LOOKS = 1, /* at paths that the request names: see preflight.h */
	/* It gives back what is in use, or tells what is: the reserve of memory is for it. */
	COOP_OP_RELIEVES = 2,
};

struct coop_op {
	const struct coop_operation *row;
	/* Gets checked arguments. Answers the request now, or keeps it and answers later. */
	void (*handle)(struct coop_request *request);
	/* Hears of a request that is refused before that, or NULL. Does not answer it. */
	void (*refused)(struct coop_request *request, const struct coop_err *err);
	unsigned traits; /* enum coop_op_trait */
};

/* The row of that name, or NULL. */
const struct coop_op *coop_ops_find(const char *name);

/* Row `index`, or NULL past the last. */
const struct coop_op *coop_ops_row(size_t index);

/* The word for it in `describe`. */
const char *coop_right_name(enum coop_right right);

/* Whether the caller may use the operation at all: 0, or the error filled. */
int coop_ops_allowed(const struct coop_request *request, struct coop_err *err);

/* Whether the caller owns it: 0, or the error filled (not_owner). */
int coop_ops_owned(const struct coop_request *request, const struct coop_process *process,
		   struct coop_err *err);

/* Finds the process that the `id` argument names, and that the operation's right allows to the
 * caller; answers the request with the error if there is none: it is gone then, with its arguments.
 * A call of the owner restarts the idle clock. */
struct coop_process *coop_ops_process(struct coop_request *request);

#endif
