/* The queue of a session: processes that have ended and whose spawn asked for it to be told, in the
 * order of their ends, and the latest notes of those that still run (progress.h). Taken by the
 * session's own agent with `completions`, each once.
 *
 * It holds nothing of its own, only links in processes, so that it is never longer than what the
 * keeper keeps of them: a record that is released, or whose receipt is dropped, leaves the queue.
 * It goes with its session. */
#ifndef COOP_KEEPER_COMPLETIONS_H
#define COOP_KEEPER_COMPLETIONS_H

#include <stdbool.h>

#include "keeper/owner/queue.h"

struct coop_observer;
struct coop_process;
struct coop_request;

/* The session has ended, and is not found any more: whoever waits is told so. */
void coop_completions_close(struct coop_completions *queue);

/* A process whose end has been told joins the queue, if it is to. A new note of one takes the place
 * of an older, at the end of the queue. */
extern const struct coop_observer coop_completions_observer;
/* The same for one whose end was not to be told so far. */
void coop_completions_add(struct coop_process *process);
/* Who took it out of the queue was never told: it is the first again. */
void coop_completions_again(struct coop_process *process);
/* Its record goes. */
void coop_completions_forget(struct coop_process *process);

/* The operation's handler. */
void coop_op_completions(struct coop_request *request);

#endif
