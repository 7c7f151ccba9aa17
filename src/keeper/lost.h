/* Starts that a keeper did not live to see the end of: each gets one in the audit when the next
 * keeper starts, whether or not the database knows of it, and however many there are. */
#ifndef COOP_KEEPER_LOST_H
#define COOP_KEEPER_LOST_H

#include "base/err.h"

struct coop_keeper;

/* Before the loop runs, with the audit and the database open and up to date, and before rows
 * without an end get one. 0, or the error filled. */
int coop_lost_audit(struct coop_keeper *keeper, struct coop_err *err);

#endif
