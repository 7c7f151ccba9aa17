/* Takes the kernel's reports of children: ends, stops, continuations. Costs as much as there are
 * reports. */
#ifndef COOP_KEEPER_REAP_H
#define COOP_KEEPER_REAP_H

#include <sys/types.h>

struct coop_keeper;

/* A child of that pid has something to report, so the kernel says: if it is a process's leader,
 * that is handled at once, ahead of everything else. */
void coop_reap_leader(struct coop_keeper *keeper, pid_t pid);

/* Handles every report that is there. Called before the loop sleeps, after
 * SIGCHLD and when a spawn has been answered that a report waited for. */
void coop_reap(struct coop_keeper *keeper);

#endif
