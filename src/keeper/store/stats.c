#include "keeper/store/stats.h"

#include "keeper/confine/confine.h"
#include "keeper/confine/groups.h"
#include "keeper/core/keeper.h"
#include "keeper/owner/agent.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/tree/orphans.h"
#include "keeper/tree/tree.h"
#include "sandbox/cgroup/cgroup.h"

#define INTERVAL_NS 200000000u /* shorter ones say nothing */

/* The share over the time since the last look that began an interval: nothing samples by itself. */
static void sample(struct coop_usage *usage, uint64_t now)
{
	uint64_t passed = now - usage->sample_at;

	if (usage->sample_at && passed < INTERVAL_NS)
		return;
	if (usage->sample_at) {
		usage->cpu_pct =
			100.0 * (double)(usage->cpu_ns - usage->sample_cpu_ns) / (double)passed;
		usage->has_pct = true;
	}
	usage->sample_at = now;
	usage->sample_cpu_ns = usage->cpu_ns;
}

void coop_stats_update(struct coop_process *process)
{
	struct coop_keeper *keeper = process->keeper;
	struct coop_usage *usage = &process->usage;

	if (coop_process_receipt(process) || process->course.phase <= COOP_PHASE_STARTING)
		return;
	if (coop_process_reaped(process) && !coop_orphans_left(keeper, process, COOP_QUICK)) {
		process->usage.descendants = 0;
		return;
	}
	/* A look from before it began cannot show it, nor one from before it ended what it left. */
	uint64_t since = coop_process_reaped(process) ? process->end.ended : process->times.started;
	int r = coop_tree_taken(keeper) <= since ? coop_tree_look(keeper)
						 : coop_tree_look_lately(keeper);
	if (r < 0)
		return;
	struct coop_tree_sum sum = coop_tree_sum(keeper, process);
	/* Of an ended one there is at least the one that was met, even if the look came at a moment
	 * when it showed nothing. */
	if (coop_process_reaped(process))
		process->usage.descendants = sum.pids ? sum.pids : 1;
	else
		process->usage.descendants = sum.pids ? sum.pids - 1 : 0;
	usage->pids = sum.pids;
	usage->memory_bytes = sum.memory_bytes;
	if (sum.memory_bytes > usage->peak_bytes)
		usage->peak_bytes = sum.memory_bytes;
	if (sum.cpu_ns + usage->reaped_cpu_ns > usage->cpu_ns)
		usage->cpu_ns = sum.cpu_ns + usage->reaped_cpu_ns;
	if (!coop_process_reaped(process))
		sample(usage, coop_tree_taken(keeper));
}

/* Null and not 0: what is not known must not look like nothing. */
static void momentary(struct coop_jsonw *w, const char *name, bool known, uint64_t value)
{
	if (known)
		coop_jsonw_uint(w, name, value);
	else
		coop_jsonw_null(w, name);
}

/* The control group that it is in: one with its limits, or one that it was frozen in. False if
 * there is none. */
static bool find_group(const struct coop_process *process, char ret[COOP_CG_PATH_MAX])
{
	const struct coop_cgroups *host = coop_groups_known(process->keeper);
	const struct coop_confine *confine = process->confine;

	if (!confine)
		return false;
	if (confine->group.path && coop_cgroup_where(host, &confine->group, ret) == 0)
		return true;
	if (confine->freezer.path)
		return coop_cgroup_where(host, &confine->freezer, ret) == 0;
	return confine->parked && coop_process_live(process) &&
	       coop_cgroup_where(host, &process->agent->rest, ret) == 0;
}

void coop_stats_write(const struct coop_process *process, struct coop_jsonw *w, const char *name)
{
	const struct coop_usage *usage = &process->usage;
	bool live = coop_process_live(process) && usage->pids > 0;
	const char *why =
		coop_process_live(process) ? "not looked at yet" : "the process has ended";
	char group[COOP_CG_PATH_MAX];

	coop_jsonw_begin(w, name);
	momentary(w, "cpu_usage_ns", live || coop_process_reaped(process), usage->cpu_ns);
	if (live && usage->has_pct)
		coop_jsonw_fixed(w, "cpu_pct", usage->cpu_pct);
	else
		coop_jsonw_null(w, "cpu_pct");
	momentary(w, "memory_bytes", live, usage->memory_bytes);
	momentary(w, "memory_peak_bytes", live || coop_process_reaped(process), usage->peak_bytes);
	momentary(w, "pids", live, usage->pids);
	bool grouped = find_group(process, group);
	coop_jsonw_string(w, "cgroup_path", grouped ? group : NULL);
	coop_jsonw_begin(w, "reasons");
	if (!live || !usage->has_pct)
		coop_jsonw_string(w, "cpu_pct",
				  live ? "no interval yet: look again after 200 ms" : why);
	if (!live) {
		coop_jsonw_string(w, "memory_bytes", why);
		coop_jsonw_string(w, "pids", why);
	}
	if (!live && !coop_process_reaped(process)) {
		coop_jsonw_string(w, "cpu_usage_ns", why);
		coop_jsonw_string(w, "memory_peak_bytes", why);
	}
	if (!grouped)
		coop_jsonw_string(w, "cgroup_path",
				  coop_process_live(process)
					  ? "no limit of it needs a control group"
					  : "the process has ended");
	coop_jsonw_end(w);
	coop_jsonw_end(w);
}
