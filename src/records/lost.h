/* Starts that a keeper did not live to see the end of: each gets one in the audit when the next
 * keeper starts, whether or not the database knows of it, and however many there are. */
#ifndef COOP_RECORDS_LOST_H
#define COOP_RECORDS_LOST_H

#include <stdint.h>

#include "interface/err.h"
#include "records/audit_chain.h"

struct coop_audit;
struct coop_store;

/* Before the loop runs, with audit and database up to date, and before rows without an end get one.
 * Adds to *lost the ends that could not be written. 0, or the error filled. */
int coop_lost_audit(struct coop_store *store, struct coop_audit *audit,
		    struct coop_audit_chain *chain, const char *state_dir, uint64_t *lost,
		    struct coop_err *err);

#endif
