#include "keeper/process/deadlines.h"

#include "base/clock.h"
#include "base/list.h"
#include "keeper/core/keeper.h"
#include "keeper/ops/follow.h"
#include "keeper/output/stream.h"
#include "keeper/process/eviction.h"
#include "keeper/process/holder.h"
#include "keeper/process/process.h"
#include "keeper/process/progress.h"
#include "keeper/start/spawn_slot.h"
#include "keeper/tree/kill.h"
#include "keeper/tree/orphans.h"

#define MS 1000000u
#define STOP_GRACE_MS 5000u
#define RETRY_NS 100000000u

static void on_timer(uv_timer_t *timer);

void coop_deadlines_init(struct coop_process *process)
{
	(void)uv_timer_init(coop_loop_of(process->keeper), &process->timer); /* cannot fail */
	process->timer.data = process;
}

static void arm(struct coop_process *process)
{
	uint64_t next = 0, now;

	for (int i = 0; i < COOP_DUE_COUNT; i++) {
		if (process->due[i] && (!next || process->due[i] < next))
			next = process->due[i];
	}
	/* A timer that fires too early looks again and is armed anew: cheaper than moving it with
	 * every byte. */
	if (!next || (process->armed && process->armed <= next))
		return;
	process->armed = next;
	now = coop_clock_now();
	uv_update_time(coop_loop_of(process->keeper));
	(void)uv_timer_start(&process->timer, on_timer, next > now ? (next - now + MS - 1) / MS : 0,
			     0);
}

void coop_deadlines_set(struct coop_process *process, enum coop_deadline which, uint64_t when)
{
	process->due[which] = when;
	if (when)
		arm(process);
}

void coop_deadlines_retry(struct coop_process *process)
{
	coop_deadlines_set(process, COOP_DUE_RETRY, coop_clock_now() + RETRY_NS);
}

static void limit_reached(struct coop_process *process, enum coop_deadline which, int64_t value,
			  uint64_t grace_ms)
{
	static const struct {
		enum coop_cause cause;
		const char *limit;
	} rules[] = {
		[COOP_DUE_TIMEOUT] = {COOP_CAUSE_TIMED_OUT, "timeout_ms"},
		[COOP_DUE_LIFETIME] = {COOP_CAUSE_LIFETIME, "max_lifetime_ms"},
		[COOP_DUE_IDLE] = {COOP_CAUSE_IDLE, "idle_timeout_ms"},
	};
	struct coop_kill_order order = {
		.cause = rules[which].cause,
		.evidence = {.limit = rules[which].limit, .value = value},
		.grace_ms = grace_ms,
	};

	if (coop_kill_begin(process, &order) < 0)
		coop_deadlines_set(process, which,
				   coop_clock_now() + RETRY_NS); /* no memory: again soon */
}

/* The idle clock does not run while somebody follows. */
static void idle_reached(struct coop_process *process)
{
	if (coop_list_empty(&process->followers)) /* else the last one to go starts it anew */
		limit_reached(process, COOP_DUE_IDLE, process->limits.idle_timeout_ms,
			      STOP_GRACE_MS);
}

/* Descendants that outlive their leader keep the record, however old: they must stay owned. So does
 * a reader in progress, and whoever started it and is about to read. */
static void retention_over(struct coop_process *process)
{
	uint64_t kept = coop_eviction_kept_until(process);

	if (kept)
		coop_deadlines_set(process, COOP_DUE_RETENTION, kept);
	else if (process->readers || coop_orphans_left(process->keeper, process, COOP_THOROUGH))
		coop_deadlines_set(process, COOP_DUE_RETENTION,
				   coop_clock_now() +
					   (uint64_t)process->limits.exit_retention_ms * MS);
	else
		coop_process_shed(process);
}

/* What is in the pipes counts, also where there was no memory to read it. False: there is none
 * still. */
static bool read_rest(struct coop_process *process)
{
	bool starved = false;

	for (int i = 0; i < process->stream_count && !process->told; i++) {
		struct coop_outlet *stream = &process->streams[i];
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
	if (process->told || process->drain_waits ||
	    (which == COOP_DUE_QUIET && process->due[COOP_DUE_QUIET]))
		return;
	/* Nobody wakes this up when there is memory again. */
	if (which == COOP_DUE_QUIET && !whole) {
		coop_deadlines_set(process, which, coop_clock_now() + RETRY_NS);
		return;
	}
	process->drain_over = true;
	coop_process_settle(process);
}

static void due(struct coop_process *process, enum coop_deadline which)
{
	const struct coop_limits *limits = &process->limits;

	switch (which) {
	case COOP_DUE_TIMEOUT:
		limit_reached(process, which, limits->timeout_ms,
			      (uint64_t)limits->timeout_grace_ms);
		break;
	case COOP_DUE_LIFETIME:
		limit_reached(process, which, limits->max_lifetime_ms, STOP_GRACE_MS);
		break;
	case COOP_DUE_IDLE:
		idle_reached(process);
		break;
	case COOP_DUE_GRACE:
		coop_kill_grace_over(process);
		break;
	case COOP_DUE_KILL_LIMIT:
		coop_kill_limit_reached(process);
		break;
	case COOP_DUE_QUIET:
	case COOP_DUE_DRAINED:
		drain_due(process, which);
		break;
	case COOP_DUE_HOLD:
		coop_holders_due(process);
		break;
	case COOP_DUE_TIDY:
		coop_process_tidied(process);
		break;
	case COOP_DUE_START:
		if (process->spawn)
			coop_spawn_due(process->spawn);
		break;
	case COOP_DUE_RETENTION:
		retention_over(process);
		break;
	case COOP_DUE_CHUNK:
		for (int i = 0; i < process->stream_count; i++)
			coop_stream_index_rest(&process->streams[i]);
		coop_follow_wake(process);
		break;
	case COOP_DUE_PROGRESS:
		coop_progress_due(process);
		break;
	case COOP_DUE_SHRINK:
		for (int i = 0; i < process->stream_count; i++)
			coop_stream_shrink(&process->streams[i]);
		break;
	case COOP_DUE_RETRY:
		coop_kill_look_again(process);
		for (int i = 0; i < process->stream_count; i++)
			coop_stream_resume(&process->streams[i]);
		coop_follow_wake(process);
		break;
	case COOP_DUE_COUNT:
		break;
	}
}

static void on_timer(uv_timer_t *timer)
{
	struct coop_process *process = coop_process_ref(timer->data);
	uint64_t now = coop_clock_now();

	process->armed = 0;
	for (int i = 0; i < COOP_DUE_COUNT; i++) {
		if (!process->due[i] || process->due[i] > now)
			continue;
		process->due[i] = 0;
		due(process, (enum coop_deadline)i);
	}
	arm(process);
	coop_process_unref(process);
}
