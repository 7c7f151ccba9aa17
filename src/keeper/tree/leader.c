#include "keeper/tree/leader.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io/procfs.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/process/registry.h"

bool coop_leader_there(const struct coop_process *process)
{
	return process->child.pid > 1 && !coop_process_reaped(process) &&
	       coop_registry_has_root(process);
}

bool coop_leader_signal(const struct coop_process *process, int number, bool group)
{
	struct coop_proc now;

	if (!coop_leader_there(process))
		return false;
	/* Our unreaped child: neither its pid nor its group can be a stranger's. */
	if (!coop_process_boxed(process))
		return kill(group ? -process->child.pid : process->child.pid, number) == 0;
	/* The child of our unreaped child: the descriptor names one process for ever, and the look
	 * afterwards says that it is one. For the group there is no such descriptor; its number is
	 * not given out again while one of its members lives. */
	COOP_AUTO_FD int fd = (int)syscall(SYS_pidfd_open, process->child.pid, 0);
	if (fd < 0 || coop_proc_read(process->child.pid, &now) < 0 ||
	    now.parent != process->child.root)
		return false;
	if (group)
		return kill(-process->child.pid, number) == 0;
	return syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) == 0;
}
