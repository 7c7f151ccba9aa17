/* What the keeper finds when it starts: its key, its database, its audit, the agents and tokens,
 * the receipts of earlier keepers. */
#ifndef COOP_KEEPER_STARTUP_H
#define COOP_KEEPER_STARTUP_H

#include "interface/err.h"

struct coop_keeper;

/* Opens and loads all that. A private keeper has none of it on disk. 0, or the error filled;
 * nothing on disk is ever replaced because it cannot be read. */
int coop_startup(struct coop_keeper *keeper, struct coop_err *err);

/* Lets go of it. */
void coop_startup_undo(struct coop_keeper *keeper);

#endif
