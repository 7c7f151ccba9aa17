#include "keeper/reports.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "keeper/keeper.h"

struct report {
	struct coop_link in_keeper; /* once it is shared */
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

struct coop_achieved *coop_reports_share(struct coop_keeper *keeper, struct coop_achieved *achieved)
{
	struct report *own = COOP_LIST_ITEM(achieved, struct report, achieved);

	if (own->in_keeper.next)
		return achieved;
	COOP_LIST_EACH(&keeper->reports, link)
	{
		struct report *other = COOP_LIST_ITEM(link, struct report, in_keeper);
		if (memcmp(&other->achieved, achieved, sizeof *achieved) != 0)
			continue;
		other->users++;
		free(own);
		return &other->achieved;
	}
	coop_list_add(&keeper->reports, &own->in_keeper);
	return achieved;
}

void coop_reports_drop(struct coop_achieved *achieved)
{
	struct report *report = achieved ? COOP_LIST_ITEM(achieved, struct report, achieved) : NULL;

	if (!report || --report->users)
		return;
	coop_list_remove(&report->in_keeper);
	free(report);
}
