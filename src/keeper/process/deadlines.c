#include "keeper/process/deadlines.h"

#include "base/clock.h"
#include "base/list.h"
#include "keeper/core/keeper.h"
#include "keeper/output/output.h"
#include "keeper/output/stream.h"
#include "keeper/process/observer.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"

#define MS 1000000u
#define RETRY_NS 100000000u
#define QUIET_NS 100000000u

static void on_timer(uv_timer_t *timer);

void coop_deadlines_init(struct coop_process *process)
{
	(void)uv_timer_init(coop_loop_of(process->keeper), &process->clock.timer); /* cannot fail */
	process->clock.timer.data = process;
}

static void arm(struct coop_process *process)
{
	uint64_t next = 0, now;

	for (int i = 0; i < COOP_DUE_COUNT; i++) {
		if (process->clock.due[i] && (!next || process->clock.due[i] < next))
			next = process->clock.due[i];
	}
	/* A timer that fires too early looks again and is armed anew: cheaper than moving it with
	 * every byte. */
	if (!next || (process->clock.armed && process->clock.armed <= next))
		return;
	process->clock.armed = next;
	now = coop_clock_now();
	uv_update_time(coop_loop_of(process->keeper));
	(void)uv_timer_start(&process->clock.timer, on_timer,
			     next > now ? (next - now + MS - 1) / MS : 0, 0);
}

void coop_deadlines_set(struct coop_process *process, enum coop_deadline which, uint64_t when)
{
	process->clock.due[which] = when;
	if (when)
		arm(process);
}

void coop_deadlines_retry(struct coop_process *process)
{
	coop_deadlines_set(process, COOP_DUE_RETRY, coop_clock_now() + RETRY_NS);
}

/* What is in the pipes counts, also where there was no memory to read it. False: there is none
 * still. */
static bool read_rest(struct coop_process *process)
{
	bool starved = false;

	for (int i = 0; i < process->output.count && !coop_process_told(process); i++) {
		struct coop_outlet *stream = &process->output.streams[i];
		if (stream->starved)
			coop_stream_resume(stream);
		else if (stream->fd >= 0 && !stream->paused)
			coop_stream_read(stream);
		starved |= stream->starved;
	}
	return !starved;
}

/* The loop may be late, and timers come before reading. A read that finds bytes sets the quiet
 * deadline anew. */
static void drain_due(struct coop_process *process, enum coop_deadline which)
{
	bool whole = read_rest(process);

	/* A holder keeps the rest in the pipe: the wait goes on when that is read. */
	if (coop_process_told(process) || process->course.drain_waits ||
	    (which == COOP_DUE_QUIET && process->clock.due[COOP_DUE_QUIET]))
		return;
	/* Nobody wakes this up when there is memory again. */
	if (which == COOP_DUE_QUIET && !whole) {
		coop_deadlines_set(process, which, coop_clock_now() + RETRY_NS);
		return;
	}
	coop_phase_at(process, COOP_AT_DRAINED);
}

/* What this room does at that moment; the others are told besides. */
static void due(struct coop_process *process, enum coop_deadline which)
{
	switch (which) {
	case COOP_DUE_QUIET:
	case COOP_DUE_DRAINED:
		drain_due(process, which);
		break;
	case COOP_DUE_CHUNK:
		coop_output_index_rest(&process->output);
		coop_observer_news(process);
		break;
	case COOP_DUE_SHRINK:
		for (int i = 0; i < process->output.count; i++)
			coop_stream_shrink(&process->output.streams[i]);
		break;
	case COOP_DUE_RETRY:
		coop_output_resume(&process->output);
		coop_observer_news(process);
		break;
	case COOP_DUE_HOLD:
	case COOP_DUE_TIDY:
	case COOP_DUE_PROGRESS:
	case COOP_DUE_TIMEOUT:
	case COOP_DUE_LIFETIME:
	case COOP_DUE_IDLE:
	case COOP_DUE_GRACE:
	case COOP_DUE_KILL_LIMIT:
	case COOP_DUE_START:
	case COOP_DUE_RETENTION:
	case COOP_DUE_COUNT:
		break;
	}
	COOP_TELL(process, on_due, which);
}

static void on_timer(uv_timer_t *timer)
{
	struct coop_process *process = coop_process_ref(timer->data);
	uint64_t now = coop_clock_now();

	process->clock.armed = 0;
	for (int i = 0; i < COOP_DUE_COUNT; i++) {
		if (!process->clock.due[i] || process->clock.due[i] > now)
			continue;
		/* Taken before it is served: whoever serves it may set it anew. */
		process->clock.due[i] = 0;
		due(process, (enum coop_deadline)i);
	}
	arm(process);
	coop_process_unref(process);
}

/* Called with each read and write: it sets a number, and mostly moves no timer. */
void coop_deadlines_touch(struct coop_process *process)
{
	if (process->terms.limits.idle_timeout_ms && coop_process_live(process))
		coop_deadlines_set(process, COOP_DUE_IDLE,
				   coop_clock_now() +
					   (uint64_t)process->terms.limits.idle_timeout_ms * MS);
}

/* The rest of the time is kept, not the moment: a holder may take as long as it is allowed to, and
 * what comes after it still has its share. */
void coop_deadlines_pause_drain(struct coop_process *process)
{
	uint64_t now = coop_clock_now(), due = process->clock.due[COOP_DUE_DRAINED];

	if (!coop_process_reaped(process) || coop_process_told(process) ||
	    process->course.drain_waits)
		return;
	process->course.drain_waits = true;
	process->course.drain_left = due > now ? due - now : 0;
	coop_deadlines_set(process, COOP_DUE_DRAINED, 0);
	coop_deadlines_set(process, COOP_DUE_QUIET, 0);
}

void coop_deadlines_resume_drain(struct coop_process *process)
{
	uint64_t now = coop_clock_now();

	if (!process->course.drain_waits || coop_process_told(process))
		return;
	process->course.drain_waits = false;
	coop_deadlines_set(process, COOP_DUE_QUIET, now + QUIET_NS);
	coop_deadlines_set(process, COOP_DUE_DRAINED, now + process->course.drain_left);
}
