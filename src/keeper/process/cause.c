#include "keeper/process/cause.h"

#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "keeper/process/observer.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"

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

/* The first one stays: a kill that comes while a time limit already ends the process has not caused
 * its end. */
void coop_cause_force(struct coop_process *process, enum coop_cause cause,
		      const struct coop_evidence *evidence)
{
	if (process->blame.forced != COOP_CAUSE_NONE || !coop_process_live(process))
		return;
	process->blame.forced = cause;
	process->blame.forced_evidence = *evidence;
	if (!process->blame.forced_evidence.at)
		process->blame.forced_evidence.at = coop_clock_wall_ms();
}

/* A rule that decided to end it counts even if it has left by itself with an exit code, as programs
 * do that handle SIGTERM. Where nobody here is to blame those are asked who know limits of the
 * kernel. */
void coop_cause_judge(struct coop_process *process, int wait_status, uint64_t cpu_ns)
{
	struct coop_ending *end = &process->end;

	if (process->blame.forced != COOP_CAUSE_NONE) {
		end->cause = process->blame.forced;
		end->evidence = process->blame.forced_evidence;
	} else if (!WIFSIGNALED(wait_status)) {
		end->cause = COOP_CAUSE_SELF_EXIT;
	} else if (process->blame.signals_sent & (1ull << (WTERMSIG(wait_status) - 1))) {
		end->cause = COOP_CAUSE_KILLED_BY_REQUEST;
		end->evidence = process->blame.signal_evidence;
	} else {
		end->cause = COOP_CAUSE_SIGNAL;
		COOP_TELL(process, on_unexplained, WTERMSIG(wait_status), cpu_ns);
	}
}
