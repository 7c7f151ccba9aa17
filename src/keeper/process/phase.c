#include "keeper/process/phase.h"

#include <sys/wait.h>

#include "keeper/core/life.h"
#include "keeper/output/output.h"
#include "keeper/process/observer.h"
#include "keeper/process/process.h"

#define STAYS COOP_PHASE_COUNT /* the moment does not apply */

/* Which phase each moment leads to, in the order ADDED, EXECUTED, ENDED, DRAINED, FREED, SHED,
 * REMOVED. A record that the registry lets go of before its end has been told is removed when it
 * has. */
#define ROW(...)            \
	{                   \
		__VA_ARGS__ \
	}
static const enum coop_phase next[COOP_PHASE_COUNT][COOP_AT_COUNT] = {
	[COOP_PHASE_NEW] =
		ROW(COOP_PHASE_STARTING, STAYS, COOP_PHASE_ENDED, STAYS, STAYS, STAYS, STAYS),
	[COOP_PHASE_STARTING] =
		ROW(STAYS, COOP_PHASE_RUNNING, COOP_PHASE_ENDED, STAYS, STAYS, STAYS, STAYS),
	[COOP_PHASE_RUNNING] = ROW(STAYS, STAYS, COOP_PHASE_ENDED, STAYS, STAYS, STAYS, STAYS),
	[COOP_PHASE_ENDED] = ROW(STAYS, STAYS, STAYS, COOP_PHASE_DRAINED, STAYS, STAYS, STAYS),
	[COOP_PHASE_DRAINED] = ROW(STAYS, STAYS, STAYS, STAYS, COOP_PHASE_TOLD, STAYS, STAYS),
	[COOP_PHASE_TOLD] =
		ROW(STAYS, STAYS, STAYS, STAYS, STAYS, COOP_PHASE_RECEIPT, COOP_PHASE_REMOVED),
	[COOP_PHASE_RECEIPT] = ROW(STAYS, STAYS, STAYS, STAYS, STAYS, STAYS, COOP_PHASE_REMOVED),
	[COOP_PHASE_REMOVED] = ROW(STAYS, STAYS, STAYS, STAYS, STAYS, STAYS, STAYS),
};

/* With on_exit kill, none is alive when the end is told. */
static bool must_wait(const struct coop_process *process)
{
	return process->terms.on_exit == COOP_ON_EXIT_KILL &&
	       (process->course.killing ||
		(coop_process_boxed(process) && !coop_process_gone(process)));
}

/* The phase is set before observers hear of it, so what they look at is true. What follows by
 * itself is tried at once. */
static void enter(struct coop_process *process, enum coop_phase phase)
{
	if (phase == COOP_PHASE_TOLD)
		COOP_TELL(process, on_telling);
	process->course.phase = phase;
	COOP_TELL(process, on_phase, phase);
	if (phase == COOP_PHASE_DRAINED)
		coop_phase_at(process, COOP_AT_FREED);
	if (phase == COOP_PHASE_TOLD && coop_process_removed(process))
		coop_phase_at(process, COOP_AT_REMOVED);
	if (phase >= COOP_PHASE_TOLD)
		coop_life_look(process->keeper);
}

/* Observers may let go of the process: it is held while they are told. */
void coop_phase_at(struct coop_process *process, enum coop_moment moment)
{
	enum coop_phase phase = next[process->course.phase][moment];

	if (phase == STAYS || (moment == COOP_AT_FREED && must_wait(process)))
		return;
	(void)coop_process_ref(process);
	enter(process, phase);
	coop_process_unref(process);
}

void coop_phase_restore(struct coop_process *process)
{
	process->output.stage = COOP_OUTPUT_GIVEN_UP;
	process->course.phase = COOP_PHASE_RECEIPT;
}

enum coop_state coop_process_state(const struct coop_process *process)
{
	if (process->course.phase >= COOP_PHASE_ENDED)
		return WIFSIGNALED(process->end.wait_status) ? COOP_STATE_SIGNALED
							     : COOP_STATE_EXITED;
	if (process->course.stop_asked)
		return COOP_STATE_STOPPING;
	if (process->course.stopped)
		return COOP_STATE_STOPPED;
	return process->course.phase == COOP_PHASE_RUNNING ? COOP_STATE_RUNNING
							   : COOP_STATE_STARTING;
}

void coop_phase_stopped(struct coop_process *process, bool stopped)
{
	enum coop_state before = coop_process_state(process);

	process->course.stopped = stopped;
	if (coop_process_state(process) != before)
		COOP_TELL(process, on_event, stopped ? "stopped" : "continued");
}

void coop_phase_stop_asked(struct coop_process *process)
{
	process->course.stop_asked =
		process->course.stop_asked || process->course.phase == COOP_PHASE_RUNNING;
}
