#include "keeper/store/facts.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>

#include "keeper/confine/confine.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "sandbox/filter/filter.h"

/* The list begins with its first fact. */
struct facts {
	struct coop_jsonw *w;
	const char *name;
	bool begun;
};

__attribute__((format(printf, 2, 3))) static void add(struct facts *facts, const char *format, ...)
{
	char text[256];
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (!facts->begun)
		coop_jsonw_array(facts->w, facts->name);
	facts->begun = true;
	coop_jsonw_string(facts->w, NULL, text);
}

/* "64 MiB", "1.5 GiB", "1000 bytes". */
static void format_bytes(uint64_t bytes, char ret[32])
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	double value = (double)bytes;
	size_t unit = 0;

	for (; value >= 1024 && unit + 1 < sizeof units / sizeof units[0]; unit++)
		value /= 1024;
	(void)snprintf(ret, 32, "%.4g %s", value, units[unit]);
}

static void tell_memory(struct facts *facts, const struct coop_confine *confine)
{
	const struct coop_cgroup_facts *counted = &confine->counted;
	uint64_t limit = (uint64_t)confine->policy.limits.memory_bytes;
	char peak[32], most[32];

	if (!counted->oom_kills)
		return;
	format_bytes(counted->memory_peak, peak);
	format_bytes(limit, most);
	if (limit)
		add(facts, "%s killed at the memory limit of %s (peak %s)",
		    counted->oom_kills == 1 ? "a process was" : "processes were", most, peak);
	else
		add(facts, "%s killed for want of memory (peak %s)",
		    counted->oom_kills == 1 ? "a process was" : "processes were", peak);
}

static void tell_forks(struct facts *facts, const struct coop_confine *confine)
{
	uint64_t refused = confine->counted.pids_refused;

	if (refused)
		add(facts, "%llu %s refused at the limit of %lld processes (max_pids)",
		    (unsigned long long)refused, refused == 1 ? "fork was" : "forks were",
		    (long long)confine->policy.limits.max_pids);
}

/* Of one that gave up by itself. Most failures have other reasons than the network: it must have
 * been tried. The kernel counts for a net namespace, which without one of its own would be the
 * host's, with everybody else's attempts. */
static void tell_network(struct facts *facts, const struct coop_process *process)
{
	const struct coop_confine *confine = process->confine;
	const char *profile = coop_confine_profile(process);
	bool own_net = confine->achieved->held[COOP_PROTECT_NETWORK].strength != COOP_NONE &&
		       confine->filter != COOP_FILTER_NO_NETWORK &&
		       confine->filter != COOP_FILTER_AMONG_OTHERS_NO_NETWORK;

	if (!own_net || !process->child.unreachable || !WIFEXITED(process->end.wait_status))
		return;
	if (confine->policy.network == COOP_NET_LOOPBACK)
		add(facts,
		    "network loopback: other hosts were tried while it ran, and there is no "
		    "network but its session's loopback (profile %s)",
		    profile);
	else
		add(facts,
		    "network none: the network was tried while it ran, and there is none "
		    "(profile %s)",
		    profile);
}

static bool ended_badly(const struct coop_process *process)
{
	return !coop_process_live(process) && process->end.wait_status != 0 &&
	       process->end.cause != COOP_CAUSE_SPAWN_FAILED &&
	       process->end.cause != COOP_CAUSE_LOST;
}

void coop_facts_write(const struct coop_process *process, struct coop_jsonw *w, const char *name)
{
	const struct coop_confine *confine = process->confine;
	struct facts facts = {.w = w, .name = name};

	if (!confine || !ended_badly(process))
		return;
	if (process->end.cause == COOP_CAUSE_SANDBOX_DENIED)
		add(&facts,
		    "killed by SIGSYS: by the system call filter, or somebody sent it that signal");
	if (process->end.cause == COOP_CAUSE_CPU_TIME)
		add(&facts, "killed at the limit of %lld s of CPU time (max_cpu_secs)",
		    (long long)confine->policy.limits.max_cpu_secs);
	tell_memory(&facts, confine);
	tell_forks(&facts, confine);
	tell_network(&facts, process);
	if (facts.begun)
		coop_jsonw_array_end(w);
}
