#include "keeper/confine/reports.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct report {
	struct coop_link in_shared; /* once it is */
	unsigned users;
	struct coop_achieved achieved;
};

struct coop_achieved *coop_reports_new(void)
{
	struct report *report = coop_mem_zalloc(sizeof *report);

	if (!report)
		return NULL;
	report->users = 1;
	return &report->achieved;
}

/* Once it is shared nothing of it changes any more, so comparing the bytes is enough. */
struct coop_achieved *coop_reports_share(struct coop_link *shared, struct coop_achieved *achieved)
{
	struct report *own = COOP_LIST_ITEM(achieved, struct report, achieved);

	if (own->in_shared.next)
		return achieved;
	COOP_LIST_EACH(shared, link)
	{
		struct report *other = COOP_LIST_ITEM(link, struct report, in_shared);
		if (memcmp(&other->achieved, achieved, sizeof *achieved) != 0)
			continue;
		other->users++;
		free(own);
		return &other->achieved;
	}
	coop_list_add(shared, &own->in_shared);
	return achieved;
}

void coop_reports_drop(struct coop_achieved *achieved)
{
	struct report *report = achieved ? COOP_LIST_ITEM(achieved, struct report, achieved) : NULL;

	if (!report || --report->users)
		return;
	coop_list_remove(&report->in_shared);
	free(report);
}
