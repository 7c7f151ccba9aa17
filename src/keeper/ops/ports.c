#include "keeper/ops/ports.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io/procfs.h"
#include "keeper/confine/confine.h"
#include "keeper/core/keeper.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/tree/orphans.h"
#include "keeper/tree/port_table.h"
#include "keeper/tree/tree.h"

#define DESCRIPTORS_MAX 8192u /* that one look follows; the next goes on from there */

struct look {
	struct coop_port_search *search;
	struct coop_port_table table;
	unsigned left; /* descriptors that may still be followed */
};

/* Whether it was given a network namespace, which may be its session's. */
static bool has_own_network(const struct coop_process *process)
{
	const struct coop_confine *confine = process->confine;

	return confine && (confine->net || (confine->namespaces & CLONE_NEWNET));
}

/* Whether the descriptor is one of the listeners. Its name is read, and nothing opened or
 * followed. */
static const struct coop_port_row *match(const struct look *look, int fds, const char *name)
{
	char text[64];
	unsigned long long inode;
	ssize_t size = readlinkat(fds, name, text, sizeof text - 1);

	if (size < 0)
		return NULL;
	text[size] = 0;
	if (sscanf(text, "socket:[%llu]", &inode) != 1)
		return NULL;
	for (size_t i = 0; i < look->table.count; i++) {
		if (look->table.rows[i].inode == inode)
			return &look->table.rows[i];
	}
	return NULL;
}

/* Goes through the descriptors of one process, as far as there is something left for it. */
static void search_one(struct look *look, const struct coop_proc *proc, DIR *fds)
{
	struct coop_port_search *search = look->search;
	int from = search->from_pid == proc->pid ? search->from_fd : 0;
	const struct dirent *item;

	while (!search->found && (item = readdir(fds))) {
		if (*item->d_name == '.' || atoi(item->d_name) < from)
			continue;
		if (!look->left) {
			search->from_pid = proc->pid;
			search->from_fd = atoi(item->d_name);
			return;
		}
		look->left--;
		const struct coop_port_row *listener = match(look, dirfd(fds), item->d_name);
		/* The number may be another's by now. */
		if (!listener || !coop_proc_is_there(proc->pid, proc->start_time))
			continue;
		search->found = true;
		search->pid = proc->pid;
		memcpy(search->address, listener->address, sizeof search->address);
	}
}

/* Members come in the order of their pids. */
static void search_member(void *user, const struct coop_proc *proc)
{
	struct look *look = user;
	char path[64];

	if (look->search->found || !look->left || proc->pid < look->search->from_pid)
		return;
	(void)snprintf(path, sizeof path, "/proc/%d/fd", proc->pid);
	DIR *fds = opendir(path);
	if (!fds)
		return; /* gone, or not ours to look at: a program with rights of its own */
	search_one(look, proc, fds);
	(void)closedir(fds);
}

/* One that ran out of descriptors goes on from where it was at the next look; else from the
 * beginning. */
static void search_tree(struct look *look, struct coop_process *process)
{
	look->left = DESCRIPTORS_MAX;
	coop_tree_each(process->keeper, process, search_member, look);
	if (look->left)
		look->search->from_pid = look->search->from_fd = 0;
}

int coop_ports_look(struct coop_process *process, struct coop_port_search *search, bool exact)
{
	struct coop_keeper *keeper = process->keeper;
	struct look look;
	uint64_t began = coop_clock_now();

	look.search = search; /* the rest is large, and filled in where it is needed */
	if (coop_process_receipt(process) || process->course.phase <= COOP_PHASE_STARTING ||
	    (coop_process_reaped(process) && !coop_orphans_left(keeper, process, COOP_QUICK)))
		return 0;
	/* The first process of its namespaces never leaves them, so its network is the one that the
	 * process was given; what somebody of the tree has in a network that he made himself is not
	 * found there, and nobody could connect to it. */
	int r = coop_port_table_read(has_own_network(process) ? process->child.root : 0,
				     search->port, &look.table);
	if (r < 0 || !look.table.count)
		return r;
	if (coop_tree_look_lately(keeper) == 0)
		search_tree(&look, process);
	/* Somebody listens there, and an earlier look does not show who has been born since. */
	if (!search->found && exact && coop_tree_taken(keeper) < began &&
	    coop_tree_look(keeper) == 0)
		search_tree(&look, process);
	return 0;
}
