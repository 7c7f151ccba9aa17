/* How the operations are carried out: who handles each row of the interface. */
#ifndef COOP_KEEPER_OPS_H
#define COOP_KEEPER_OPS_H

#include <stddef.h>

#include "interface/err.h"
#include "interface/operations.h"
#include "keeper/link/operation.h"

struct coop_request;

/* The row of that name, or NULL. */
const struct coop_op *coop_ops_find(const char *name);

/* Row `index`, or NULL past the last. */
const struct coop_op *coop_ops_row(size_t index);

/* The word for it in `describe`. */
const char *coop_right_name(enum coop_right right);

/* Whether the caller may use the operation at all: 0, or the error filled. */
int coop_ops_allowed(const struct coop_request *request, struct coop_err *err);

#endif
