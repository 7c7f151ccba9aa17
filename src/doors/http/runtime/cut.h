/* The beginning and the end of a run of events, by bytes: what an answer shows of output that is
 * longer than its budget. */
#ifndef COOP_HTTP_CUT_H
#define COOP_HTTP_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "coop.h"

/* Zero-initialise it and set the budgets. */
struct coop_runtime_cut {
	size_t head_budget, tail_budget;
	size_t head_bytes, tail_bytes; /* of events, held now */
	bool tail_cut;                 /* something between head and tail is left out */
	struct coop_buf head, tail;    /* pieces, for coop_runtime_cut_next() */
};

void coop_runtime_cut_clear(struct coop_runtime_cut *cut);

/* Adds the next event. An event on a cut is trimmed. 0 or -ENOMEM. */
int coop_runtime_cut_add(struct coop_runtime_cut *cut, const struct coop_chunk *chunk);

/* Goes over the pieces, those of the head first. *at is 0 at the beginning. An event of which both
 * parts were kept whole comes as one. */
bool coop_runtime_cut_next(struct coop_runtime_cut *cut, size_t *at, struct coop_chunk *ret);

#endif
