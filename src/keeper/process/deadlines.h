/* The deadlines of one process: whatever happens to it because time has passed. One timer serves
 * them all. */
#ifndef COOP_KEEPER_DEADLINES_H
#define COOP_KEEPER_DEADLINES_H

#include <stdint.h>

struct coop_process;

/* Moments at which something is due, in nanoseconds of the monotonic clock. */
enum coop_deadline {
	COOP_DUE_TIMEOUT,
	COOP_DUE_LIFETIME,
	COOP_DUE_IDLE,
	COOP_DUE_GRACE,      /* of a stop: then the tree is killed */
	COOP_DUE_KILL_LIMIT, /* a kill answers at the latest then */
	COOP_DUE_QUIET,      /* no byte for so long after the end: drained */
	COOP_DUE_DRAINED,    /* drained at the latest */
	COOP_DUE_HOLD,       /* a holder that has not moved until then loses its right */
	COOP_DUE_TIDY,  /* what still stands in folders after the end is waited for no longer */
	COOP_DUE_START, /* a start takes long: it may stand still */
	COOP_DUE_RETENTION,
	COOP_DUE_CHUNK,    /* an unfinished character has waited long enough for its rest */
	COOP_DUE_PROGRESS, /* the next note about one that runs */
	COOP_DUE_SHRINK,   /* an enlarged pipe has been quiet */
	COOP_DUE_RETRY,    /* something could not be done for want of memory or descriptors */
	COOP_DUE_COUNT,
};

void coop_deadlines_init(struct coop_process *process);

/* Sets or (0) clears one. */
void coop_deadlines_set(struct coop_process *process, enum coop_deadline which, uint64_t when);

/* Something could not be done, and nothing will tell when it can be: it is tried again soon. */
void coop_deadlines_retry(struct coop_process *process);

#endif
