#include "keeper/link/job.h"

#include "keeper/core/keeper.h"
#include "keeper/core/life.h"
#include "keeper/link/request.h"

static void run(uv_work_t *work)
{
	struct coop_job *job = work->data;

	job->run(job);
}

static void done(uv_work_t *work, int status)
{
	struct coop_job *job = work->data;

	(void)status; /* jobs are never cancelled */
	coop_life_disk_end(job->keeper);
	job->done(job);
}

/* The work goes on; nobody hears of it. */
static void detach(struct coop_request *request)
{
	struct coop_job *job = request->state;

	job->request = NULL;
}

void coop_job_begin(struct coop_keeper *keeper, struct coop_job *job)
{
	job->keeper = keeper;
	job->work.data = job;
	if (job->request) {
		job->request->state = job;
		job->request->on_drop = detach;
	}
	coop_life_disk_begin(keeper);
	(void)uv_queue_work(coop_loop_of(keeper), &job->work, run,
			    done); /* fails only without a work function */
}

struct coop_request *coop_job_release(struct coop_job *job)
{
	struct coop_request *request = job->request;

	job->request = NULL;
	if (request) {
		request->state = NULL;
		request->on_drop = NULL;
	}
	return request;
}
