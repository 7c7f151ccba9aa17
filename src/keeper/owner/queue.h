/* The queue of a session as its owner has it: three lists. What goes in and out:
 * process/completions.h. */
#ifndef COOP_KEEPER_QUEUE_H
#define COOP_KEEPER_QUEUE_H

#include <stdbool.h>

#include "base/list.h"

struct coop_completions {
	struct coop_link ended;   /* coop_process.in_completions, oldest first */
	struct coop_link notes;   /* coop_progress.in_notes, likewise */
	struct coop_link waiters; /* requests, by in_process; their on_room answers */
};

static inline void coop_completions_init(struct coop_completions *queue)
{
	coop_list_init(&queue->ended);
	coop_list_init(&queue->notes);
	coop_list_init(&queue->waiters);
}

static inline bool coop_completions_empty(const struct coop_completions *queue)
{
	return coop_list_empty(&queue->ended) && coop_list_empty(&queue->notes);
}

#endif
