#include "keeper/confine/peer.h"

#include <unistd.h>

#include "base/io/procfs.h"
#include "keeper/confine/confine.h"
#include "keeper/core/keeper.h"
#include "keeper/host/views.h"
#include "keeper/process/process.h"
#include "keeper/process/registry.h"
#include "keeper/tree/orphans.h"

#define ANCESTORS_MAX 4096 /* a table that changes while it is read could hold a loop */

/* A child of ours that is no client: of a record, or nobody's any more. */
static bool confined(const struct coop_keeper *keeper, const struct coop_proc *proc)
{
	const struct coop_process *process = coop_registry_by_pid(keeper, proc->pid);

	if (!process) {
		uint64_t n = coop_orphans_owner(keeper, coop_tree_of(keeper), proc);
		process = n ? coop_registry_by_number(keeper, n) : NULL;
	}
	return !process || !process->confine ||
	       process->confine->policy.profile != COOP_PROFILE_FULL;
}

static bool is_confined(struct coop_keeper *keeper, pid_t pid)
{
	pid_t self = getpid();
	struct coop_proc proc;

	for (int i = 0; i < ANCESTORS_MAX && pid > 1; i++) {
		if (pid == self)
			return false;
		if (coop_proc_read(pid, &proc) < 0)
			return true;
		if (proc.parent == self)
			return confined(keeper, &proc);
		pid = proc.parent;
	}
	/* Who stands below so many that the top is not found has not been looked at. */
	return pid > 1;
}

bool coop_peer_may_connect(struct coop_keeper *keeper, pid_t pid)
{
	return !coop_views_loose(keeper) || !is_confined(keeper, pid);
}
