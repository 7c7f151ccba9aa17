/* How an operation is carried out: its row of the interface, and who handles it. The rows are those
 * of ops/ops.c; a request points to its own. */
#ifndef COOP_KEEPER_OPERATION_H
#define COOP_KEEPER_OPERATION_H

#include <stdbool.h>
#include <stdint.h>

#include "interface/err.h"
#include "interface/operations.h"

struct coop_agent;
struct coop_request;

enum coop_op_trait {
	COOP_OP_LOOKS = 1, /* at paths that the request names: see ops/preflight.h */
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

/* What requests are carried out with; main/ fills it in. */
struct coop_intake_calls {
	/* The row of that name, or NULL. */
	const struct coop_op *(*find)(const char *name);
	/* Whether the caller may use the operation at all: 0, or the error filled. */
	int (*allowed)(const struct coop_request *request, struct coop_err *err);
	/* Whether there is room for so many bytes of the agent's: 0, or the error filled. */
	int (*may_hold)(struct coop_agent *agent, uint64_t bytes, struct coop_err *err);
	/* Whether a request that looks at paths may go on now; else it waits, or was answered. */
	bool (*ready)(struct coop_request *request);
};

#endif
