/* What becomes of ended processes: finished records are kept in full up to a number per agent, then turn into receipts, of which
 * each principal keeps a number. First go those whose end their owner has been told. Nothing that lives ever goes, nor a persistent
 * record within its retention. */
#ifndef COOP_KEEPER_EVICTION_H
#define COOP_KEEPER_EVICTION_H

#include <stdbool.h>
#include <stdint.h>

struct coop_agent;
struct coop_keeper;
struct coop_process;

/* Its record is final: it may go when there are too many. */
void coop_eviction_add(struct coop_process *process);
/* Its owner has been told of the end. */
void coop_eviction_told(struct coop_process *process);
/* It is a receipt now, or is being removed. */
void coop_eviction_remove(struct coop_process *process);
void coop_eviction_receipt(struct coop_process *process);

/* Whether it is finished, and nothing keeps it from becoming a receipt. */
bool coop_eviction_may_go(struct coop_process *process);

/* Applies the caps. Whoever shows counts or lists calls it first, so that the caps are never seen exceeded. */
void coop_eviction_trim(struct coop_keeper *keeper);
/* Does so in batches: at once if the surplus is large, else after a short while. Called before the loop sleeps. */
void coop_eviction_trim_soon(struct coop_keeper *keeper);

/* Limits have changed. */
void coop_eviction_recount(struct coop_keeper *keeper);

#endif
