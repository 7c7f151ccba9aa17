#include "keeper/process/completions.h"

#include "base/list.h"
#include "keeper/link/connection.h"
#include "keeper/link/request.h"
#include "keeper/owner/session.h"
#include "keeper/process/observer.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/process/progress.h"

/* It is answered when its client has room: what it will take is taken out of the queue then, not
 * now. */
static void wake_first(struct coop_completions *queue)
{
	struct coop_request *request =
		COOP_LIST_ITEM(queue->waiters.next, struct coop_request, in_process);

	coop_list_remove(&request->in_process);
	coop_conn_when_room(request->conn, request);
}

/* Those who have waited longest first, as long as something is left for them. One that finds
 * nothing any more when its client has read enough waits again. */
static void wake(struct coop_completions *queue)
{
	while (!coop_completions_empty(queue) && !coop_list_empty(&queue->waiters))
		wake_first(queue);
}

static void empty_list(struct coop_link *head)
{
	while (!coop_list_empty(head))
		coop_list_remove(head->next);
}

/* The session is over: those who wait are answered with nothing. */
void coop_completions_close(struct coop_completions *queue)
{
	empty_list(&queue->ended);
	empty_list(&queue->notes);
	while (!coop_list_empty(&queue->waiters))
		wake_first(queue);
}

static struct coop_completions *queue_of(const struct coop_process *process)
{
	return coop_session_completions(process->agent, process->terms.session_n);
}

/* Who cancelled it wants to hear no more of it; who could not start it has heard. */
static bool is_due(const struct coop_process *process)
{
	return process->terms.completion && !coop_process_removed(process) &&
	       process->end.cause != COOP_CAUSE_CANCELLED &&
	       process->end.cause != COOP_CAUSE_SPAWN_FAILED;
}

void coop_completions_add(struct coop_process *process)
{
	struct coop_completions *queue = is_due(process) ? queue_of(process) : NULL;

	if (!queue)
		return;
	coop_list_add(&queue->ended, &process->in.completions);
	wake(queue);
}

static void on_phase(struct coop_process *process, enum coop_phase phase)
{
	if (phase == COOP_PHASE_TOLD)
		coop_completions_add(process);
}

/* The client went before it had read the answer: the end goes back to the front of the queue, where
 * it was. */
void coop_completions_again(struct coop_process *process)
{
	struct coop_completions *queue = is_due(process) ? queue_of(process) : NULL;

	if (!queue || process->in.completions.next)
		return;
	coop_list_push(&queue->ended, &process->in.completions);
	wake(queue);
}

/* Only the latest note of each waits: an older one is out of date, and a queue that nobody reads
 * must not grow. */
static void on_progress(struct coop_process *process)
{
	struct coop_completions *queue = coop_process_removed(process) ? NULL : queue_of(process);

	if (!queue)
		return;
	coop_list_remove(&process->progress->in_notes);
	coop_list_add(&queue->notes, &process->progress->in_notes);
	wake(queue);
}

void coop_completions_forget(struct coop_process *process)
{
	coop_list_remove(&process->in.completions);
	if (process->progress)
		coop_list_remove(&process->progress->in_notes);
}

const struct coop_observer coop_completions_observer = {
	.on_phase = on_phase,
	.on_progress = on_progress,
};
