/* Changes to agents and tokens: checked, written to the database, then made in memory, one after
 * the other. So what is answered is on disk, what is checked still holds when it is made, and
 * nothing waits for the disk on the loop's thread. */
#ifndef COOP_KEEPER_CHANGE_H
#define COOP_KEEPER_CHANGE_H

#include "base/list.h"
#include "keeper/link/job.h"

struct coop_store;

/* Embedded at the beginning of one kind of change. Zero-initialised, then the calls (and
 * job.request) set. */
struct coop_change {
	struct coop_job job;
	struct coop_link in_keeper;
	/* Loop's thread, when its turn has come. 0, or the error filled: nothing is changed. */
	int (*check)(struct coop_change *change, struct coop_err *err);
	/* Helper thread. May be called without a store (a private keeper): never then. */
	int (*write)(struct coop_change *change, struct coop_store *store, struct coop_err *err);
	/* Loop's thread: makes it, and answers the request (coop_job_release) unless that goes on.
	 * 0, or the error filled, which is then the answer. */
	int (*make)(struct coop_change *change, struct coop_err *err);
	/* Frees it. */
	void (*drop)(struct coop_change *change);
};

/* Its job may be without a request: then nobody hears of it. */
void coop_change_begin(struct coop_keeper *keeper, struct coop_change *change);

/* What has not had its turn is forgotten: the keeper has left. */
void coop_changes_drop(struct coop_keeper *keeper);

#endif
