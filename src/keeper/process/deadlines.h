/* The deadlines of one process: whatever happens to it because time has passed. One timer serves
 * them all. */
#ifndef COOP_KEEPER_DEADLINES_H
#define COOP_KEEPER_DEADLINES_H

#include <stdint.h>

#include "keeper/process/kinds.h"

struct coop_process;

void coop_deadlines_init(struct coop_process *process);

/* Sets or (0) clears one. */
void coop_deadlines_set(struct coop_process *process, enum coop_deadline which, uint64_t when);

/* Something could not be done, and nothing will tell when it can be: it is tried again soon. */
void coop_deadlines_retry(struct coop_process *process);

/* A holder keeps the output of an ended process from being read: the time that the end waits for it
 * does not run. */
void coop_deadlines_pause_drain(struct coop_process *process);

/* It is read again. */
void coop_deadlines_resume_drain(struct coop_process *process);

/* Output, input or an owner's call: the idle clock restarts. */
void coop_deadlines_touch(struct coop_process *process);

#endif
