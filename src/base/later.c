#include "base/later.h"

bool coop_laters_run(struct coop_laters *laters)
{
	struct coop_link now;

	coop_list_init(&now);
	while (!coop_list_empty(&laters->queue)) {
		struct coop_link *link = laters->queue.next;
		coop_list_remove(link);
		coop_list_add(&now, link);
	}
	while (!coop_list_empty(&now)) {
		struct coop_later *item = COOP_LIST_ITEM(now.next, struct coop_later, in_queue);
		coop_list_remove(&item->in_queue);
		item->run(item);
	}
	return !coop_list_empty(&laters->queue);
}
