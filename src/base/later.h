/* Work that is due at the end of the loop's turn.
 *
 * Whoever notices that something is to be done, and would do it in the middle of something else,
 * puts an item into the queue. An item is in it once, however often it is asked for, and costs no
 * memory: it is embedded in what it belongs to. The owner of the loop empties the queue before the
 * loop sleeps. */
#ifndef COOP_BASE_LATER_H
#define COOP_BASE_LATER_H

#include <stdbool.h>

#include "base/list.h"

struct coop_later {
	struct coop_link in_queue;
	void (*run)(struct coop_later *item); /* set once, before the item is queued */
};

struct coop_laters {
	struct coop_link queue;
};

#define COOP_LATER_OWNER(item, type, member) COOP_LIST_ITEM(item, type, member)

static inline void coop_laters_init(struct coop_laters *laters)
{
	coop_list_init(&laters->queue);
}

/* Queues the item, behind all others, unless it is queued already. */
static inline void coop_later(struct coop_laters *laters, struct coop_later *item)
{
	if (!item->in_queue.next)
		coop_list_add(&laters->queue, &item->in_queue);
}

/* Takes the item back; does nothing if it is not queued. */
static inline void coop_later_cancel(struct coop_later *item)
{
	coop_list_remove(&item->in_queue);
}

/* Runs each item that is queued now once, in order. What is queued meanwhile, also by an item for
 * itself, waits for the next call. Returns whether there is any. */
bool coop_laters_run(struct coop_laters *laters);

#endif
