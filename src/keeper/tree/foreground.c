#include "keeper/tree/foreground.h"

#include <signal.h>
#include <sys/ioctl.h>

#include "base/io/procfs.h"
#include "keeper/process/process.h"
#include "keeper/tree/tree.h"

struct group {
	pid_t id;
	int number;
	bool reached;
};

/* Looked at as a member of the tree, so that a group number that was given out anew reaches nobody
 * else. */
static void signal_member(void *user, const struct coop_proc *proc)
{
	struct group *group = user;

	if (proc->group == group->id && coop_proc_signal(proc, group->number) == 0)
		group->reached = true;
}

bool coop_foreground_signal(struct coop_process *process, int number, pid_t *ret_group)
{
	struct group group = {.number = number};

	*ret_group = 0;
	if (process->output.input.fd < 0 ||
	    ioctl(process->output.input.fd, TIOCGPGRP, &group.id) < 0 || group.id <= 1)
		return false;
	*ret_group = group.id;
	/* The signals of a terminal's keys are sent by the kernel itself, to all of the group at
	 * once. */
	if ((number == SIGINT || number == SIGQUIT || number == SIGTSTP) &&
	    ioctl(process->output.input.fd, TIOCSIG, number) == 0)
		return true;
	/* The group may be gone and its number a stranger's: only members of the tree are reached,
	 * each by itself. */
	if (coop_tree_look(process->keeper) < 0)
		return false;
	coop_tree_each(process->keeper, process, signal_member, &group);
	return group.reached;
}
