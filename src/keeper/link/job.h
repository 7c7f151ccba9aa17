/* Work that waits for a disk, done by the helper thread for one request: the request is answered
 * when it is done. Jobs are done one after the other, in the order they were given. */
#ifndef COOP_KEEPER_JOB_H
#define COOP_KEEPER_JOB_H

#include <uv.h>

#include "interface/err.h"

struct coop_keeper;
struct coop_request;

/* Embedded at the beginning of whatever the work needs. Zero-initialised, then run, done (and
 * request) set. */
struct coop_job {
	uv_work_t work;
	struct coop_keeper *keeper;
	struct coop_request *request; /* NULL when it has gone meanwhile, or never was */
	/* On the helper thread; touches nothing that the loop's thread does. */
	void (*run)(struct coop_job *job);
	/* Back on the loop's thread: answers the request, if it is still there, and frees the
	 * job. */
	void (*done)(struct coop_job *job);
	int result; /* of run, by convention 0 or negative with err filled */
	struct coop_err err;
};

void coop_job_begin(struct coop_keeper *keeper, struct coop_job *job);

/* For `done`: the request is not tied to the job any more, and must be answered. NULL: there is
 * nobody to answer. */
struct coop_request *coop_job_release(struct coop_job *job);

#endif
