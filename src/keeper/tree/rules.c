#include "keeper/tree/rules.h"

#include "base/clock.h"
#include "base/io/log.h"
#include "base/list.h"
#include "keeper/conf/conf.h"
#include "keeper/core/keeper.h"
#include "keeper/link/connection.h"
#include "keeper/link/watch.h"
#include "keeper/process/deadlines.h"
#include "keeper/process/eviction.h"
#include "keeper/process/observer.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/tree/kill.h"
#include "keeper/tree/orphans.h"

#define MS 1000000u
#define STOP_GRACE_MS 5000u
#define RETRY_NS 100000000u

/* A limit ends it as a stop does, so that a program can put its things in order, within the grace
 * that goes with the limit. */
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
	if (coop_list_empty(
		    &process->audience.followers)) /* else the last one to go starts it anew */
		limit_reached(process, COOP_DUE_IDLE, process->terms.limits.idle_timeout_ms,
			      STOP_GRACE_MS);
}

/* Descendants that outlive their leader keep the record, however old: they must stay owned. So does
 * a reader in progress, and whoever started it and is about to read. */
static void retention_over(struct coop_process *process)
{
	uint64_t kept = coop_eviction_kept_until(process);

	if (kept)
		coop_deadlines_set(process, COOP_DUE_RETENTION, kept);
	else if (process->audience.readers ||
		 coop_orphans_left(process->keeper, process, COOP_THOROUGH))
		coop_deadlines_set(process, COOP_DUE_RETENTION,
				   coop_clock_now() +
					   (uint64_t)process->terms.limits.exit_retention_ms * MS);
	else
		coop_phase_at(process, COOP_AT_SHED);
}

/* Without memory it goes on: the ring stays bounded. */
static void on_output_quota(struct coop_process *process)
{
	const struct coop_kill_order order = {
		.cause = COOP_CAUSE_OUTPUT_QUOTA,
		.evidence = {.limit = "spool_stream_bytes",
			     .value = coop_conf_of(process->keeper)->settings.spool_stream_bytes},
	};

	(void)coop_kill_begin(process, &order);
}

static void on_due(struct coop_process *process, enum coop_deadline which)
{
	const struct coop_limits *limits = &process->terms.limits;

	if (which == COOP_DUE_TIMEOUT)
		limit_reached(process, which, limits->timeout_ms,
			      (uint64_t)limits->timeout_grace_ms);
	else if (which == COOP_DUE_LIFETIME)
		limit_reached(process, which, limits->max_lifetime_ms, STOP_GRACE_MS);
	else if (which == COOP_DUE_IDLE)
		idle_reached(process);
	else if (which == COOP_DUE_GRACE)
		coop_kill_grace_over(process);
	else if (which == COOP_DUE_KILL_LIMIT)
		coop_kill_limit_reached(process);
	else if (which == COOP_DUE_RETENTION)
		retention_over(process);
	else if (which == COOP_DUE_RETRY)
		coop_kill_look_again(process);
}

/* The first process of a namespace ends the rest by leaving; of others the rest is killed, where
 * on_exit says so. */
static void leader_ended(struct coop_process *process)
{
	const struct coop_kill_order order = {.cause = process->end.cause};

	/* Without memory the descendants stay owned, and are shown. */
	if (process->terms.on_exit == COOP_ON_EXIT_KILL && !coop_process_boxed(process) &&
	    process->end.cause != COOP_CAUSE_SPAWN_FAILED &&
	    coop_orphans_left(process->keeper, process, COOP_THOROUGH))
		(void)coop_kill_begin(process, &order);
	coop_kill_look_again(process);
}

static void on_phase(struct coop_process *process, enum coop_phase phase)
{
	if (phase == COOP_PHASE_ENDED)
		leader_ended(process);
	if (phase != COOP_PHASE_TOLD)
		return;
	/* Asked now: from the moment that nobody is left, its session's number may become somebody
	 * else's. */
	(void)coop_orphans_left(process->keeper, process, COOP_QUICK);
	coop_kill_look_again(process);
}

/* As far as is known costs nothing; otherwise it may take a look at the kernel. */
static bool owns_others(struct coop_process *process, bool known)
{
	return known ? coop_orphans_left(process->keeper, process, COOP_QUICK)
		     : coop_orphans_may_be_left(process->keeper, process);
}

const struct coop_observer coop_tree_observer = {
	.on_phase = on_phase,
	.on_held = coop_kill_look_again,
	.owns_others = owns_others,
	.on_empty = coop_kill_look_again,
	.on_output_quota = on_output_quota,
	.on_due = on_due,
};

/* Ephemeral processes end with the connection that started them. */
static void on_over(struct coop_conn *conn)
{
	static const struct coop_kill_order order = {.cause = COOP_CAUSE_SESSION_END,
						     .grace_ms = 5000};

	COOP_LIST_EACH(&conn->leases, link)
	{
		struct coop_process *process =
			COOP_LIST_ITEM(link, struct coop_process, origin.in_lease);
		coop_list_remove(&process->origin.in_lease);
		if (coop_kill_begin(process, &order) < 0)
			coop_log(COOP_LOG_ERROR, "out of memory: ephemeral process goes on id=%s",
				 process->id);
	}
}

const struct coop_conn_watch coop_tree_watch = {.on_over = on_over};
