#include "keeper/confine/watch.h"

#include <signal.h>

#include "base/clock.h"
#include "keeper/confine/confine.h"
#include "keeper/confine/folders.h"
#include "keeper/confine/freeze.h"
#include "keeper/confine/groups.h"
#include "keeper/confine/net.h"
#include "keeper/confine/private_files.h"
#include "keeper/owner/agent.h"
#include "keeper/process/deadlines.h"
#include "keeper/process/observer.h"
#include "keeper/process/process.h"

/* Who asks for a tidy workspace waits for it no longer than this. */
#define TIDY_NS 2000000000u
#define SECOND_NS 1000000000u

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
static void on_unexplained(struct coop_process *process, int signal, uint64_t cpu_ns)
{
	const struct coop_confine *confine = process->confine;
	int64_t limit = confine ? confine->policy.limits.max_cpu_secs : 0;
	struct coop_ending *end = &process->end;

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

/* May be called more than once: a process can be empty before its end is told, and after. */
void coop_confine_over(struct coop_process *process)
{
	struct coop_confine *confine = process->confine;

	if (!confine)
		return;
	coop_confine_started(process);
	coop_folders_drop(process->keeper, confine->ghosts, confine->ghost_count);
	confine->ghosts = NULL;
	confine->ghost_count = 0;
	coop_net_drop(confine->net);
	confine->net = NULL;
	coop_private_files_remove(process);
}

static void on_free(struct coop_process *process)
{
	if (!process->confine)
		return;
	coop_confine_over(process);
	coop_groups_leave(process);
	coop_confine_discard(process->confine);
	process->confine = NULL;
}

/* Placeholders go with the first process, a moment after the end. */
static void on_phase(struct coop_process *process, enum coop_phase phase)
{
	if (phase == COOP_PHASE_TOLD && coop_process_boxed(process) && process->course.emptied &&
	    process->confine->ghost_count && !coop_process_gone(process))
		coop_deadlines_set(process, COOP_DUE_TIDY, coop_clock_now() + TIDY_NS);
}

static void on_empty(struct coop_process *process)
{
	coop_confine_over(process);
	if (coop_process_boxed(process))
		coop_groups_leave(process);
}

const struct coop_observer coop_confine_observer = {
	.on_phase = on_phase,
	.on_reaped = coop_groups_count,
	.on_unexplained = on_unexplained,
	.on_killing = coop_freeze_release,
	.on_empty = on_empty,
	.on_free = on_free,
};

void coop_confine_agent_left(struct coop_agent *agent)
{
	coop_net_orphan(&agent->net);
	coop_groups_agent_removed(agent);
}
