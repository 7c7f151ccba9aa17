#include "keeper/process/process.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/mem.h"
#include "keeper/agents/agent.h"
#include "keeper/conf/conf.h"
#include "keeper/confine/confine.h"
#include "keeper/confine/groups.h"
#include "keeper/core/keeper.h"
#include "keeper/core/life.h"
#include "keeper/core/meters.h"
#include "keeper/link/connection.h"
#include "keeper/ops/follow.h"
#include "keeper/ops/notices.h"
#include "keeper/ops/op_port.h"
#include "keeper/ops/op_wait.h"
#include "keeper/output/digest.h"
#include "keeper/output/ring.h"
#include "keeper/output/spool.h"
#include "keeper/process/completions.h"
#include "keeper/process/deadlines.h"
#include "keeper/process/eviction.h"
#include "keeper/process/holder.h"
#include "keeper/process/progress.h"
#include "keeper/process/quota.h"
#include "keeper/process/registry.h"
#include "keeper/process/stats.h"
#include "keeper/process/wire.h"
#include "keeper/start/slots.h"
#include "keeper/store/journal.h"
#include "keeper/store/spawn_audit.h"
#include "keeper/tree/kill.h"
#include "keeper/tree/orphans.h"

/* The end is told when the output has been quiet for this long after it, at the latest after the
 * second. */
#define QUIET_NS 100000000u
#define DRAIN_LIMIT_NS 2000000000u
/* Who asks for a tidy workspace waits for it no longer than this. */
#define TIDY_NS 2000000000u
#define MS 1000000u
#define SECOND_NS 1000000000u

#define TO(executed, stopped, continued, stop_asked)                                    \
	{                                                                               \
		COOP_STATE_##executed, COOP_STATE_##stopped, COOP_STATE_##continued,    \
			COOP_STATE_##stop_asked, COOP_STATE_EXITED, COOP_STATE_SIGNALED \
	}

/* One row for each state, one column for each event: EXECUTED, STOPPED, CONTINUED, STOP_ASKED,
 * EXITED, SIGNALED. */
static const enum coop_state transitions[COOP_STATE_COUNT][COOP_EVENT_COUNT] = {
	[COOP_STATE_STARTING] = TO(RUNNING, STOPPED, STARTING, STARTING),
	[COOP_STATE_RUNNING] = TO(RUNNING, STOPPED, RUNNING, STOPPING),
	[COOP_STATE_STOPPED] = TO(STOPPED, STOPPED, RUNNING, STOPPING),
	[COOP_STATE_STOPPING] = TO(STOPPING, STOPPING, STOPPING, STOPPING),
	[COOP_STATE_EXITED] = {[0 ... COOP_EVENT_COUNT - 1] = COOP_STATE_EXITED},
	[COOP_STATE_SIGNALED] = {[0 ... COOP_EVENT_COUNT - 1] = COOP_STATE_SIGNALED},
};

const char *coop_cause_name(enum coop_cause cause)
{
	static const char *const names[] = {
		[COOP_CAUSE_NONE] = NULL,
		[COOP_CAUSE_SELF_EXIT] = "self_exit",
		[COOP_CAUSE_SIGNAL] = "signal",
		[COOP_CAUSE_KILLED_BY_REQUEST] = "killed_by_request",
		[COOP_CAUSE_TIMED_OUT] = "timed_out",
		[COOP_CAUSE_LIFETIME] = "lifetime",
		[COOP_CAUSE_IDLE] = "idle",
		[COOP_CAUSE_OUTPUT_QUOTA] = "output_quota",
		[COOP_CAUSE_OOM] = "oom",
		[COOP_CAUSE_CPU_TIME] = "cpu_time",
		[COOP_CAUSE_SANDBOX_DENIED] = "sandbox_denied",
		[COOP_CAUSE_SESSION_END] = "session_end",
		[COOP_CAUSE_OWNER_RETIRED] = "owner_retired",
		[COOP_CAUSE_CANCELLED] = "cancelled",
		[COOP_CAUSE_SHUTDOWN] = "shutdown",
		[COOP_CAUSE_SPAWN_FAILED] = "spawn_failed",
		[COOP_CAUSE_LOST] = "lost",
	};

	return names[cause];
}

enum coop_cause coop_cause_parse(const char *name)
{
	for (enum coop_cause cause = COOP_CAUSE_SELF_EXIT; name && cause < COOP_CAUSE_COUNT;
	     cause++) {
		if (!strcmp(coop_cause_name(cause), name))
			return cause;
	}
	return COOP_CAUSE_NONE;
}

void coop_process_event(struct coop_process *process, enum coop_event event)
{
	enum coop_state before = process->state;

	process->state = transitions[before][event];
	if (process->state == before)
		return;
	if (process->state == COOP_STATE_STOPPED)
		coop_notices_tell(process, "stopped");
	else if (before == COOP_STATE_STOPPED && process->state == COOP_STATE_RUNNING)
		coop_notices_tell(process, "continued");
}

struct coop_process *coop_process_new(struct coop_agent *agent)
{
	struct coop_keeper *keeper = agent->keeper;
	struct coop_process *process = coop_mem_zalloc(sizeof *process);

	if (!process)
		return NULL;
	process->keeper = keeper;
	process->asked = coop_clock_now();
	process->agent = coop_agent_ref(agent);
	process->refs = 1;
	coop_list_init(&process->waiters);
	coop_list_init(&process->followers);
	coop_list_init(&process->holders);
	coop_readers_init(&process->named);
	coop_stdin_init(&process->input);
	process->index.limit = (size_t)coop_conf_of(keeper)->settings.max_events;
	for (int i = 0; i < 2; i++)
		process->streams[i] = (struct coop_outlet){.process = process, .fd = -1};
	coop_deadlines_init(process);
	return process;
}

static void on_timer_closed(uv_handle_t *handle)
{
	struct coop_process *process = handle->data;

	coop_labels_clear(&process->labels);
	free(process->archived_evidence);
	coop_agent_unref(process->agent);
	free(process);
}

struct coop_process *coop_process_ref(struct coop_process *process)
{
	process->refs++;
	return process;
}

void coop_process_unref(struct coop_process *process)
{
	if (--process->refs)
		return;
	/* Nothing points here any more but handles of libuv, whose closing holds references of its
	 * own, and the timer. */
	coop_journal_forget(process);
	coop_index_clear(&process->index);
	coop_notes_clear(&process->notes);
	coop_readers_clear(&process->named);
	for (int i = 0; i < 2; i++)
		coop_ring_clear(&process->streams[i].ring);
	coop_spool_free(process);
	coop_confine_free(process);
	coop_digest_free(process->digest);
	coop_progress_free(process);
	coop_wire_close(process->wire);
	uv_close((uv_handle_t *)&process->timer, on_timer_closed);
}

struct coop_outlet *coop_process_stream(struct coop_process *process, unsigned number)
{
	for (int i = 0; i < process->stream_count; i++) {
		if (process->streams[i].number == number)
			return &process->streams[i];
	}
	return NULL;
}

void coop_process_touch(struct coop_process *process)
{
	if (process->limits.idle_timeout_ms && coop_process_live(process))
		coop_deadlines_set(process, COOP_DUE_IDLE,
				   coop_clock_now() +
					   (uint64_t)process->limits.idle_timeout_ms * MS);
}

void coop_process_force(struct coop_process *process, enum coop_cause cause,
			const struct coop_evidence *evidence)
{
	if (process->forced != COOP_CAUSE_NONE || !coop_process_live(process))
		return;
	process->forced = cause;
	process->forced_evidence = *evidence;
	if (!process->forced_evidence.at)
		process->forced_evidence.at = coop_clock_wall_ms();
}

void coop_process_executed(struct coop_process *process)
{
	uint64_t now = coop_clock_now();

	process->started = now;
	process->started_at = coop_clock_wall_ms();
	coop_meters_of(process->keeper)->starts++;
	coop_histogram_add(&coop_meters_of(process->keeper)->spawn, now - process->asked);
	coop_process_event(process, COOP_EVENT_EXECUTED);
	coop_journal_started(process);
	coop_notices_tell(process, "started");
	for (int i = 0; i < process->stream_count; i++) {
		if (process->streams[i].ring.end)
			coop_notices_output(process, &process->streams[i]);
	}
	if (process->limits.timeout_ms)
		coop_deadlines_set(process, COOP_DUE_TIMEOUT,
				   now + (uint64_t)process->limits.timeout_ms * MS);
	if (process->limits.max_lifetime_ms)
		coop_deadlines_set(process, COOP_DUE_LIFETIME,
				   now + (uint64_t)process->limits.max_lifetime_ms * MS);
	coop_progress_begin(process);
	coop_process_touch(process);
}

/* It was killed in the group of its agent's processes. */
static void blame_share(struct coop_process *process)
{
	const struct coop_agent *agent = process->agent;
	struct coop_sandbox_limits shares;

	coop_groups_shares(agent, &shares);
	process->end.evidence = (struct coop_evidence){
		.limit = agent->parent ? "agent_memory_bytes" : "principal_memory_bytes",
		.value = shares.memory_bytes};
}

/* A signal that nobody here sent. The filter kills with SIGSYS, the limit of CPU time warns with
 * SIGXCPU and kills those who do not listen; where neither is in force these are signals like any
 * other. */
static void judge_signal(struct coop_process *process, int signal, uint64_t cpu_ns)
{
	const struct coop_confine *confine = process->confine;
	int64_t limit = confine ? confine->policy.limits.max_cpu_secs : 0;
	struct coop_ending *end = &process->end;

	end->cause = COOP_CAUSE_SIGNAL;
	if (signal == SIGKILL && confine && confine->counted.oom_kills) {
		end->cause = COOP_CAUSE_OOM;
		end->evidence = (struct coop_evidence){
			.limit = "memory_bytes", .value = confine->policy.limits.memory_bytes};
		if (confine->parked)
			blame_share(process);
		return;
	}
	if (signal == SIGSYS && confine && confine->filter)
		end->cause = COOP_CAUSE_SANDBOX_DENIED;
	if (limit &&
	    (signal == SIGXCPU || (signal == SIGKILL && cpu_ns / SECOND_NS >= (uint64_t)limit))) {
		end->cause = COOP_CAUSE_CPU_TIME;
		end->evidence = (struct coop_evidence){.limit = "max_cpu_secs", .value = limit};
	}
}

/* Which cause the end has: the first rule that fired, else a signal of ours, else what the kernel
 * says. */
static void judge(struct coop_process *process, int wait_status, uint64_t cpu_ns)
{
	struct coop_ending *end = &process->end;

	if (process->forced != COOP_CAUSE_NONE) {
		end->cause = process->forced;
		end->evidence = process->forced_evidence;
	} else if (!WIFSIGNALED(wait_status)) {
		end->cause = COOP_CAUSE_SELF_EXIT;
	} else if (process->signals_sent & (1ull << (WTERMSIG(wait_status) - 1))) {
		end->cause = COOP_CAUSE_KILLED_BY_REQUEST;
		end->evidence = process->signal_evidence;
	} else {
		judge_signal(process, WTERMSIG(wait_status), cpu_ns);
	}
}

static void finish(struct coop_process *process, int wait_status)
{
	static const enum coop_deadline over[] = {COOP_DUE_TIMEOUT, COOP_DUE_LIFETIME,
						  COOP_DUE_IDLE};
	uint64_t now = coop_clock_now();

	process->end.wait_status = wait_status;
	process->end.ended = now;
	process->end.ended_at = coop_clock_wall_ms();
	coop_process_event(process,
			   WIFSIGNALED(wait_status) ? COOP_EVENT_SIGNALED : COOP_EVENT_EXITED);
	for (size_t i = 0; i < sizeof over / sizeof over[0]; i++)
		coop_deadlines_set(process, over[i], 0);
	coop_progress_end(process);
	coop_stdin_close(process);
}

static bool streams_ended(const struct coop_process *process)
{
	for (int i = 0; i < process->stream_count; i++) {
		if (!process->streams[i].eof)
			return false;
	}
	return true;
}

void coop_process_drain_pause(struct coop_process *process)
{
	uint64_t now = coop_clock_now(), due = process->due[COOP_DUE_DRAINED];

	if (!process->reaped || process->told || process->drain_waits)
		return;
	process->drain_waits = true;
	process->drain_left = due > now ? due - now : 0;
	coop_deadlines_set(process, COOP_DUE_DRAINED, 0);
	coop_deadlines_set(process, COOP_DUE_QUIET, 0);
}

void coop_process_drain_resume(struct coop_process *process)
{
	uint64_t now = coop_clock_now();

	if (!process->drain_waits || process->told)
		return;
	process->drain_waits = false;
	coop_deadlines_set(process, COOP_DUE_QUIET, now + QUIET_NS);
	coop_deadlines_set(process, COOP_DUE_DRAINED, now + process->drain_left);
}

void coop_process_ended(struct coop_process *process, int wait_status, const struct rusage *usage)
{
	uint64_t used = coop_stats_cpu_ns(usage) + process->usage.reaped_cpu_ns;
	uint64_t peak = (uint64_t)usage->ru_maxrss * 1024;

	process->reaped = true;
	coop_groups_count(process, wait_status);
	judge(process, wait_status, coop_stats_cpu_ns(usage));
	finish(process, wait_status);
	if (used > process->usage.cpu_ns)
		process->usage.cpu_ns = used;
	if (peak > process->usage.peak_bytes)
		process->usage.peak_bytes = peak;
	if (!streams_ended(process)) {
		coop_deadlines_set(process, COOP_DUE_QUIET, process->end.ended + QUIET_NS);
		coop_deadlines_set(process, COOP_DUE_DRAINED, process->end.ended + DRAIN_LIMIT_NS);
		if (coop_holders_waited_for(process))
			coop_process_drain_pause(process);
	}
	/* The first process of a namespace ends the rest by leaving. */
	if (process->on_exit == COOP_ON_EXIT_KILL && !coop_process_boxed(process) &&
	    coop_orphans_left(process->keeper, process, COOP_THOROUGH)) {
		struct coop_kill_order order = {.cause = process->end.cause};
		(void)coop_kill_begin(
			process,
			&order); /* without memory the descendants stay owned, and are shown */
	}
	if (process->kill)
		coop_kill_look_again(process);
	/* May reach the terminal's end, and settle: after the kill has begun that on_exit asks
	 * for. */
	if (process->pty)
		coop_stream_resume(&process->streams[0]);
	coop_process_settle(process);
}

bool coop_process_boxed(const struct coop_process *process)
{
	return process->confine && process->confine->init;
}

bool coop_process_tidy(const struct coop_process *process)
{
	return !process->due[COOP_DUE_TIDY];
}

void coop_process_tidied(struct coop_process *process)
{
	coop_deadlines_set(process, COOP_DUE_TIDY, 0);
	coop_wait_answer_all(process);
	coop_follow_wake(process);
}

void coop_process_program_ended(struct coop_process *process, int wait_status,
				const struct rusage *usage, bool alone)
{
	if (process->reaped)
		return;
	process->childless = alone;
	coop_process_ended(process, wait_status, usage);
}

void coop_process_root_gone(struct coop_process *process)
{
	process->root_gone = true;
	if (!coop_process_boxed(process))
		return;
	process->childless = true;
	coop_confine_over(process);
	coop_groups_leave(process);
	coop_registry_settled(process);
	coop_eviction_look(process->keeper);
	coop_kill_look_again(process);
	coop_process_settle(process);
	if (!coop_process_tidy(process))
		coop_process_tidied(process);
	coop_slots_rest(process->keeper);
	coop_life_look(process->keeper);
}

void coop_process_not_started(struct coop_process *process)
{
	process->end.cause = COOP_CAUSE_SPAWN_FAILED;
	process->end.wait_status = 126 << 8;
	process->started = process->end.ended = coop_clock_now();
	coop_spawn_audit_end(process);
}

void coop_process_failed(struct coop_process *process, int exit_code)
{
	process->reaped = true;
	process->root_gone = true; /* or about to: no kill has to wait for it */
	process->end.cause = COOP_CAUSE_SPAWN_FAILED;
	process->started = coop_clock_now();
	process->started_at = coop_clock_wall_ms();
	if (process->record_failure)
		coop_journal_started(process);
	finish(process, exit_code << 8);
	for (int i = 0; i < process->stream_count; i++)
		coop_stream_close(&process->streams[i]);
	coop_kill_look_again(process);
	coop_process_settle(process);
}

void coop_process_recharge(struct coop_process *process)
{
	uint64_t held = 0;

	for (int i = 0; i < process->stream_count; i++)
		held += process->streams[i].ring.capacity;
	if (process->told && !process->removed && !process->receipt && streams_ended(process))
		coop_quota_charge(process, held);
}

/* What was never started and leaves no record is nobody's news. */
static bool is_news(const struct coop_process *process)
{
	return process->end.cause != COOP_CAUSE_SPAWN_FAILED || process->record_failure;
}

void coop_process_write_ends(struct coop_keeper *keeper)
{
	while (!coop_list_empty(coop_registry_ended(keeper))) {
		struct coop_process *process = COOP_LIST_ITEM(coop_registry_ended(keeper)->next,
							      struct coop_process, in_ended);
		coop_list_remove(&process->in_ended);
		coop_spawn_audit_end(process);
		if (is_news(process))
			coop_journal_ended(process);
		/* With a first process its mounts stand until that one is gone, and so do the
		 * placeholders below them. */
		if (process->childless && (!coop_process_boxed(process) || process->root_gone))
			coop_confine_over(process);
		coop_process_unref(process);
	}
}

static void tell(struct coop_process *process)
{
	static const enum coop_deadline over[] = {COOP_DUE_QUIET, COOP_DUE_DRAINED, COOP_DUE_CHUNK};

	/* The last event before the exit: behind all output, as far as that is known. */
	for (int i = 0; i < process->stream_count; i++)
		coop_stream_index_rest(&process->streams[i]);
	coop_note_end(process);
	process->told = true;
	/* Asked now: from the moment that nobody is left, its session's number may become somebody
	 * else's. */
	(void)coop_orphans_left(process->keeper, process, COOP_QUICK);
	for (size_t i = 0; i < sizeof over / sizeof over[0]; i++)
		coop_deadlines_set(process, over[i], 0);
	for (int i = 0; i < process->stream_count; i++) {
		struct coop_outlet *stream = &process->streams[i];
		/* A child that had to wait for room may have left bytes in the pipe: they are read
		 * when there is room. */
		stream->told_end = stream->paused ? UINT64_MAX : stream->ring.end;
	}
	process->exit_cursor = process->index.next;
	coop_digest_settle(process);
	if (!process->removed)
		coop_deadlines_set(process, COOP_DUE_RETENTION,
				   coop_clock_now() +
					   (uint64_t)process->limits.exit_retention_ms * MS);
	if (coop_process_boxed(process) && process->confine->ghost_count && process->childless &&
	    !process->root_gone)
		coop_deadlines_set(process, COOP_DUE_TIDY, coop_clock_now() + TIDY_NS);
	coop_registry_finished(process);
	coop_process_recharge(process);
	if (process->end.cause != COOP_CAUSE_SPAWN_FAILED)
		coop_histogram_add(&coop_meters_of(process->keeper)->exit,
				   coop_clock_now() - process->end.ended);
	coop_meters_of(process->keeper)->ends[process->end.cause]++;
	if (is_news(process))
		coop_notices_tell(process, "exited");
	coop_list_add(coop_registry_ended(process->keeper), &coop_process_ref(process)->in_ended);
	coop_completions_ended(process);
	coop_wait_answer_all(process);
	coop_op_port_ended(process);
	coop_follow_wake(process);
	coop_holders_told(process);
	if (process->kill)
		coop_kill_look_again(process);
	coop_life_look(process->keeper);
}

void coop_process_settle(struct coop_process *process)
{
	if (!process->reaped || process->told)
		return;
	/* With on_exit kill, none is alive when the end is told. */
	if (process->on_exit == COOP_ON_EXIT_KILL && coop_process_boxed(process) &&
	    !process->root_gone)
		return;
	if (process->kill && process->on_exit == COOP_ON_EXIT_KILL && process->kill->killing &&
	    !process->kill->nobody_left)
		return;
	if (streams_ended(process) || process->drain_over)
		tell(process);
}

void coop_process_reader_begin(struct coop_process *process)
{
	process->readers++;
}

void coop_process_reader_end(struct coop_process *process)
{
	process->readers--;
	coop_process_let_go(process);
}

void coop_process_owner_told(struct coop_process *process)
{
	if (process->owner_told || !process->told)
		return;
	process->owner_told = true;
	coop_eviction_told(process);
}

void coop_process_let_go(struct coop_process *process)
{
	for (int i = 0; process->removed && !process->readers && i < process->stream_count; i++)
		coop_stream_close(&process->streams[i]);
}

void coop_process_shed(struct coop_process *process)
{
	if (process->receipt)
		return;
	process->receipt = true;
	coop_deadlines_set(process, COOP_DUE_RETENTION, 0);
	coop_stdin_close(process);
	for (int i = 0; i < process->stream_count; i++)
		coop_stream_close(&process->streams[i]);
	coop_index_clear(&process->index);
	coop_spool_free(process);
	coop_labels_shorten(&process->labels);
	coop_registry_shed(process);
}
