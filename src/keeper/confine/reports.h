/* What holds for each process, once for all of which the same holds: a record keeps it for as long
 * as it lives, and most are alike. */
#ifndef COOP_KEEPER_REPORTS_H
#define COOP_KEEPER_REPORTS_H

#include "base/list.h"
#include "sandbox/policy/protection.h"

/* An empty one of the caller's own; NULL without memory. */
struct coop_achieved *coop_reports_new(void);

/* It will not change any more: gives the one of the list that stands for all like it. */
struct coop_achieved *coop_reports_share(struct coop_link *shared, struct coop_achieved *report);

/* One user less. NULL is none. */
void coop_reports_drop(struct coop_achieved *report);

#endif
