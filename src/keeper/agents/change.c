#include "keeper/agents/change.h"
#include "keeper/core/books.h"
#include "keeper/owner/agents.h"

#include <string.h>

#include "interface/err.h"
#include "keeper/core/keeper.h"
#include "keeper/link/request.h"
#include "records/store.h"

/* Over: with an error, that is the answer. Then it is the next one's turn. */
static void finish(struct coop_keeper *keeper, struct coop_change *change, int result,
		   const struct coop_err *err)
{
	struct coop_request *request = result < 0 ? coop_job_release(&change->job) : NULL;

	if (request)
		coop_request_fail(request, err);
	change->drop(change);
	coop_agents_of(keeper)->changing = false;
}

static void go_on(struct coop_keeper *keeper);

/* Each change is a transaction of its own: its answer says that this one is on disk. */
static void run(struct coop_job *job)
{
	struct coop_change *change = (struct coop_change *)job;
	struct coop_store *store = coop_books_of(job->keeper)->store;

	job->result = coop_store_begin(store, &job->err);
	if (job->result < 0)
		return;
	job->result = change->write(change, store, &job->err);
	if (job->result < 0)
		coop_store_rollback(store);
	else
		job->result = coop_store_commit(store, &job->err);
}

static void done(struct coop_job *job)
{
	struct coop_change *change = (struct coop_change *)job;
	struct coop_err err = job->err;
	int r = job->result;

	if (r < 0)
		/* Where it is, is not every agent's business. */
		(void)coop_err_set(&err, COOP_UNAVAILABLE, "the database cannot be written to: %s",
				   strerror(-r));
	else
		r = change->make(change, &err);
	struct coop_keeper *keeper = job->keeper;
	finish(keeper, change, r, &err);
	go_on(keeper);
}

/* Checked when its turn has come and not before: so the check still holds when it is made. */
static void begin(struct coop_keeper *keeper, struct coop_change *change)
{
	struct coop_err err = {0};
	int r = change->check(change, &err);

	if (r == 0 && coop_books_of(keeper)->store) {
		change->job.run = run;
		change->job.done = done;
		coop_job_begin(keeper, &change->job);
		return;
	}
	if (r == 0)
		r = change->make(change, &err);
	finish(keeper, change, r, &err);
}

/* Whatever is refused at once makes room for the next, in a loop: there may be thousands. */
static void go_on(struct coop_keeper *keeper)
{
	while (!coop_agents_of(keeper)->changing &&
	       !coop_list_empty(&coop_agents_of(keeper)->changes)) {
		struct coop_change *change = COOP_LIST_ITEM(coop_agents_of(keeper)->changes.next,
							    struct coop_change, in_keeper);
		coop_list_remove(&change->in_keeper);
		coop_agents_of(keeper)->changing = true;
		begin(keeper, change);
	}
}

/* It goes before its turn: nothing happens. */
static void forget(struct coop_request *request)
{
	struct coop_change *change = request->state;

	coop_list_remove(&change->in_keeper);
	change->job.request = NULL;
	change->drop(change);
}

void coop_change_begin(struct coop_keeper *keeper, struct coop_change *change)
{
	change->job.keeper = keeper;
	if (change->job.request) {
		change->job.request->state = change;
		change->job.request->on_drop = forget;
	}
	coop_list_add(&coop_agents_of(keeper)->changes, &change->in_keeper);
	go_on(keeper);
}

/* Those that wait when the keeper leaves: their requests went with their connections. */
void coop_changes_drop(struct coop_keeper *keeper)
{
	while (!coop_list_empty(&coop_agents_of(keeper)->changes)) {
		struct coop_change *change = COOP_LIST_ITEM(coop_agents_of(keeper)->changes.next,
							    struct coop_change, in_keeper);
		coop_list_remove(&change->in_keeper);
		change->drop(change);
	}
}
