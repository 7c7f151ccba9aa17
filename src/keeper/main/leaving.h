/* How the keeper leaves: when nothing is left to keep, or when it is asked to. */
#ifndef COOP_KEEPER_LEAVING_H
#define COOP_KEEPER_LEAVING_H

#include "keeper/main/keeper.h"

/* Sets the timers and calls up. */
void coop_leaving_init(struct coop_main *main);

/* The loop's turn is nearly over: if the keeper is leaving and everything has ended, the last
 * answers are written; once they are sent the loop stops. */
void coop_leaving_go_on(struct coop_main *main);

/* The loop has stopped. What the helper thread is at, and placeholders that a file system is asked
 * about, are waited for, but not for long. Returns whether the helper thread is done. */
bool coop_leaving_disk_done(struct coop_main *main);
void coop_leaving_errands_done(struct coop_main *main);

#endif
