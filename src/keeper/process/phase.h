/* The life of a process: one phase after the other, by one table. What happened comes in as a
 * moment; the table says which phase that leads to, and whoever observes phases is told. Nothing
 * else moves a process, and nobody looks "in case".
 *
 * What a user sees (running, stopped, stopping, …) is rendered from the phase, and from whether it
 * is stopped or being stopped: coop_process_state(). */
#ifndef COOP_KEEPER_PHASE_H
#define COOP_KEEPER_PHASE_H

#include <stdbool.h>

struct coop_process;

enum coop_phase {
	COOP_PHASE_NEW,      /* being made: in no registry */
	COOP_PHASE_STARTING, /* its program has not been executed */
	COOP_PHASE_RUNNING,
	COOP_PHASE_ENDED,   /* its leader has been reaped; output may still come */
	COOP_PHASE_DRAINED, /* that is over, or was waited for long enough; others may be dying */
	COOP_PHASE_TOLD,    /* whoever waits for the end has been answered */
	COOP_PHASE_RECEIPT, /* output and events have been given up */
	COOP_PHASE_REMOVED, /* out of the registry; whoever reads still may */
	COOP_PHASE_COUNT,
};

enum coop_moment {
	COOP_AT_ADDED,    /* the registry has it */
	COOP_AT_EXECUTED, /* its program runs */
	COOP_AT_ENDED,    /* its leader has been reaped, or it could not be started */
	COOP_AT_DRAINED,  /* its output has ended, or enough was waited for it */
	COOP_AT_FREED,    /* what kept its end from being told may be over */
	COOP_AT_SHED,     /* its output and events are given up */
	COOP_AT_REMOVED,  /* the registry has let go of it */
	COOP_AT_COUNT,
};

enum coop_state {
	COOP_STATE_STARTING,
	COOP_STATE_RUNNING,
	COOP_STATE_STOPPED,
	COOP_STATE_STOPPING,
	COOP_STATE_EXITED,
	COOP_STATE_SIGNALED,
	COOP_STATE_COUNT,
};

/* Something happened. What does not apply to the present phase changes nothing. */
void coop_phase_at(struct coop_process *process, enum coop_moment moment);

/* The program was stopped, or goes on. */
void coop_phase_stopped(struct coop_process *process, bool stopped);
/* A stop was asked for. */
void coop_phase_stop_asked(struct coop_process *process);

/* It is a receipt of an earlier keeper: nobody is told. */
void coop_phase_restore(struct coop_process *process);

enum coop_state coop_process_state(const struct coop_process *process);

/* Its leader lives, or is yet to come. */
bool coop_process_live(const struct coop_process *process);
bool coop_process_reaped(const struct coop_process *process);
bool coop_process_told(const struct coop_process *process);
bool coop_process_receipt(const struct coop_process *process);
/* The registry had it, and has it no more. */
bool coop_process_removed(const struct coop_process *process);

#endif
