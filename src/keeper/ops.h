/* The operations: one row each. Every door's verbs are translations of these rows. */
#ifndef COOP_KEEPER_OPS_H
#define COOP_KEEPER_OPS_H

#include <stddef.h>

#include "base/schema.h"

struct coop_keeper;
struct coop_process;
struct coop_request;

struct coop_op {
	const char *name, *summary;
	const char *right; /* what a caller must be allowed: look, use, manage */
	bool waits;        /* may stay open for as long as it takes */
	size_t data_max;   /* bytes that a request may bring */
	const struct coop_field *args, *result;
	/* Gets checked arguments. Answers the request now, or keeps it and answers later. */
	void (*handle)(struct coop_request *request);
};

/* The row of that name, or NULL. */
const struct coop_op *coop_ops_find(const char *name);

/* Row `index`, or NULL past the last. */
const struct coop_op *coop_ops_row(size_t index);

/* Finds the process that the `id` argument names; answers the request with the error if there is none: it is gone
 * then, with its arguments. Counts as a call of the
 * owner: the idle clock restarts. */
struct coop_process *coop_ops_process(struct coop_request *request);

#endif
