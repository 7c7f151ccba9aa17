#include "keeper/process/report.h"

#include <sys/wait.h>

#include "base/clock.h"
#include "keeper/core/keeper.h"
#include "keeper/core/life.h"
#include "keeper/core/meters.h"
#include "keeper/output/output.h"
#include "keeper/output/stdin.h"
#include "keeper/output/stream.h"
#include "keeper/process/cause.h"
#include "keeper/process/deadlines.h"
#include "keeper/process/eviction.h"
#include "keeper/process/holder.h"
#include "keeper/process/observer.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/process/progress.h"
#include "keeper/process/registry.h"
#include "keeper/process/wire.h"

/* The end is told when the output has been quiet for this long after it, at the latest after the
 * second. */
#define QUIET_NS 100000000u
#define DRAIN_LIMIT_NS 2000000000u
#define MS 1000000u

static void set_limit(struct coop_process *process, enum coop_deadline which, int64_t after_ms)
{
	if (after_ms)
		coop_deadlines_set(process, which,
				   process->times.started + (uint64_t)after_ms * MS);
}

void coop_report_executed(struct coop_process *process)
{
	struct coop_meters *meters = coop_meters_of(process->keeper);

	process->times.started = process->output.began = coop_clock_now();
	process->times.started_at = coop_clock_wall_ms();
	meters->starts++;
	coop_histogram_add(&meters->spawn, process->times.started - process->times.asked);
	coop_phase_at(process, COOP_AT_EXECUTED);
	for (int i = 0; i < process->output.count; i++) {
		if (process->output.streams[i].ring.end)
			COOP_TELL(process, on_first_output, &process->output.streams[i]);
	}
	set_limit(process, COOP_DUE_TIMEOUT, process->terms.limits.timeout_ms);
	set_limit(process, COOP_DUE_LIFETIME, process->terms.limits.max_lifetime_ms);
	coop_progress_begin(process);
	coop_deadlines_touch(process);
}

/* What ran while it lived is over. */
static void stop_clocks(struct coop_process *process)
{
	static const enum coop_deadline over[] = {COOP_DUE_TIMEOUT, COOP_DUE_LIFETIME,
						  COOP_DUE_IDLE};

	for (size_t i = 0; i < sizeof over / sizeof over[0]; i++)
		coop_deadlines_set(process, over[i], 0);
	coop_progress_end(process);
	coop_stdin_close(&process->output);
}

static void note_end(struct coop_process *process, int wait_status)
{
	process->end.wait_status = wait_status;
	process->end.ended = coop_clock_now();
	process->end.ended_at = coop_clock_wall_ms();
}

uint64_t coop_report_cpu_ns(const struct rusage *usage)
{
	return ((uint64_t)usage->ru_utime.tv_sec + (uint64_t)usage->ru_stime.tv_sec) * 1000000000u +
	       ((uint64_t)usage->ru_utime.tv_usec + (uint64_t)usage->ru_stime.tv_usec) * 1000u;
}

/* The larger of what was seen and what the kernel reports: a look during the life may have counted
 * more than the leader's own children. */
static void note_usage(struct coop_usage *usage, const struct rusage *reported)
{
	uint64_t used = coop_report_cpu_ns(reported) + usage->reaped_cpu_ns;
	uint64_t peak = (uint64_t)reported->ru_maxrss * 1024;

	if (used > usage->cpu_ns)
		usage->cpu_ns = used;
	if (peak > usage->peak_bytes)
		usage->peak_bytes = peak;
}

/* Descendants that hold the pipes must not hold the end back for long. */
static void wait_for_output(struct coop_process *process)
{
	coop_deadlines_set(process, COOP_DUE_QUIET, process->end.ended + QUIET_NS);
	coop_deadlines_set(process, COOP_DUE_DRAINED, process->end.ended + DRAIN_LIMIT_NS);
	if (coop_holders_waited_for(process))
		coop_deadlines_pause_drain(process);
}

/* In this order: those who may know why are asked before the cause is judged, and it is judged
 * before anybody hears of the end. */
void coop_report_ended(struct coop_process *process, int wait_status, const struct rusage *usage)
{
	COOP_TELL(process, on_reaped, wait_status);
	coop_cause_judge(process, wait_status, coop_report_cpu_ns(usage));
	note_end(process, wait_status);
	note_usage(&process->usage, usage);
	stop_clocks(process);
	coop_phase_at(process, COOP_AT_ENDED);
	if (!coop_output_ended(&process->output))
		wait_for_output(process);
	/* May reach the terminal's end, and with it that of the output: after the kill has begun
	 * that on_exit asks for. */
	if (process->terms.pty)
		coop_stream_resume(&process->output.streams[0]);
	if (coop_output_ended(&process->output))
		coop_phase_at(process, COOP_AT_DRAINED);
}

void coop_report_program_ended(struct coop_process *process, int wait_status,
			       const struct rusage *usage, bool alone)
{
	if (coop_process_reaped(process))
		return;
	/* Nobody has to be told of that before the end: only the end makes it matter. */
	if (alone)
		process->course.emptied = coop_clock_now();
	coop_report_ended(process, wait_status, usage);
}

/* It is so from now on: whoever waits for that is answered. */
static void tidied(struct coop_process *process)
{
	coop_deadlines_set(process, COOP_DUE_TIDY, 0);
	COOP_TELL(process, on_tidy);
	coop_observer_news(process);
}

void coop_report_root_reaped(struct coop_process *process)
{
	if (!coop_process_boxed(process))
		return;
	coop_report_emptied(process);
	coop_phase_at(process, COOP_AT_FREED);
	if (!coop_process_tidy(process))
		tidied(process);
	coop_life_look(process->keeper);
}

static void on_message(struct coop_wire *wire, const struct coop_plan_status *message, pid_t sender)
{
	struct coop_process *process = wire->user;
	struct rusage usage;

	(void)sender;
	if (message->event == COOP_PLAN_STOPPED)
		coop_phase_stopped(process, true);
	else if (message->event == COOP_PLAN_CONTINUED)
		coop_phase_stopped(process, false);
	if (message->event != COOP_PLAN_EXITED)
		return;
	process->child.unreachable = message->unreachable;
	coop_wire_usage(message, &usage);
	coop_report_program_ended(process, message->wait_status, &usage, message->alone);
}

static void on_end(struct coop_wire *wire)
{
	struct coop_process *process = wire->user;

	process->child.wire = NULL;
	coop_wire_close(wire);
}

void coop_report_listen(struct coop_process *process, struct coop_wire *wire)
{
	wire->user = process;
	wire->on_message = on_message;
	wire->on_end = on_end;
	process->child.wire = wire;
}

/* As if it had run and ended at once: whoever waits, follows or reads finds the same as of any
 * other. */
void coop_report_failed(struct coop_process *process, int exit_code)
{
	process->end.cause = COOP_CAUSE_SPAWN_FAILED;
	process->times.started = process->output.began = coop_clock_now();
	process->times.started_at = coop_clock_wall_ms();
	note_end(process, exit_code << 8);
	stop_clocks(process);
	coop_output_close(&process->output);
	coop_phase_at(process, COOP_AT_ENDED);
	coop_phase_at(process, COOP_AT_DRAINED);
}

void coop_report_emptied(struct coop_process *process)
{
	if (!process->course.emptied)
		process->course.emptied = coop_clock_now();
	coop_registry_settled(process);
	coop_eviction_look(process->keeper);
	COOP_TELL(process, on_empty);
}

static void on_due(struct coop_process *process, enum coop_deadline which)
{
	if (which == COOP_DUE_TIDY)
		tidied(process);
}

const struct coop_observer coop_report_observer = {.on_due = on_due};
