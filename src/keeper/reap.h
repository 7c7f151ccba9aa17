/* Takes the kernel's reports of children: ends, stops, continuations. Costs as much as there are reports. */
#ifndef COOP_KEEPER_REAP_H
#define COOP_KEEPER_REAP_H

struct coop_keeper;

/* Handles every report that is there. Called on SIGCHLD, and when a spawn has been answered that a report waited for. */
void coop_reap(struct coop_keeper *keeper);

#endif
