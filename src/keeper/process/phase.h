/* The life of a process: one phase after the other, by one table. What happened comes in as a
 * moment; the table says which phase that leads to, and whoever observes phases is told. Nothing
 * else moves a process, and nobody looks "in case".
 *
 * What a user sees (running, stopped, stopping, …) is rendered from the phase, and from whether it
 * is stopped or being stopped: coop_process_state(). */
#ifndef COOP_KEEPER_PHASE_H
#define COOP_KEEPER_PHASE_H

#include <stdbool.h>

#include "keeper/process/kinds.h"

struct coop_process;

/* Something happened. What does not apply to the present phase changes nothing. */
void coop_phase_at(struct coop_process *process, enum coop_moment moment);

/* The program was stopped, or goes on. */
void coop_phase_stopped(struct coop_process *process, bool stopped);
/* A stop was asked for. */
void coop_phase_stop_asked(struct coop_process *process);

/* It is a receipt of an earlier keeper: nobody is told. */
void coop_phase_restore(struct coop_process *process);

enum coop_state coop_process_state(const struct coop_process *process);

#endif
