#include "keeper/main/reap.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "keeper/core/keeper.h"
#include "keeper/core/life.h"
#include "keeper/core/meters.h"
#include "keeper/launch/launcher.h"
#include "keeper/main/keeper.h"
#include "keeper/process/eviction.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/process/registry.h"
#include "keeper/process/report.h"
#include "keeper/process/wire.h"
#include "keeper/start/slots.h"
#include "keeper/start/spawn.h"
#include "keeper/start/spawn_slot.h"
#include "keeper/tree/kill.h"
#include "keeper/tree/orphans.h"
#include "keeper/tree/tree.h"

/* Takes one report of that child away. Returns whether the child is gone for good. */
static bool consume(pid_t pid, int *ret_code, int *ret_status, struct rusage *ret_usage)
{
	siginfo_t info = {0};

	/* The C library's waitid gives no resource usage; the kernel's does. */
	if (syscall(SYS_waitid, P_PID, pid, &info, WEXITED | WSTOPPED | WCONTINUED | WNOHANG,
		    ret_usage) < 0 ||
	    info.si_pid != pid)
		return false;
	*ret_code = info.si_code;
	*ret_status = info.si_status;
	return info.si_code == CLD_EXITED || info.si_code == CLD_KILLED ||
	       info.si_code == CLD_DUMPED;
}

/* waitid tells code and status apart; the rest of the code knows what wait() gives. */
static int wait_status(int code, int status)
{
	if (code == CLD_EXITED)
		return (status & 0xff) << 8;
	return (status & 0x7f) | (code == CLD_DUMPED ? 0x80 : 0);
}

/* The first process is gone, and with it all. If it could not tell how the program ended, that was
 * killed together with it. */
static void namespace_gone(struct coop_process *process, int status, const struct rusage *usage)
{
	if (process->child.wire)
		coop_wire_drain(process->child.wire);
	if (!coop_process_reaped(process))
		coop_report_program_ended(process, WIFSIGNALED(status) ? status : SIGKILL, usage,
					  true);
}

static void leader_reported(struct coop_process *process)
{
	int code = 0, status = 0;
	struct rusage usage = {0};
	bool gone = consume(process->child.root, &code, &status, &usage), boxed;

	boxed = coop_process_boxed(process);
	if (!gone) {
		/* The program's own stops are told over the wire. */
		if (boxed && code == CLD_STOPPED && process->spawn)
			coop_spawn_stands(process->spawn);
		if (boxed)
			return;
		if (code == CLD_STOPPED)
			coop_phase_stopped(process, true);
		else if (code == CLD_CONTINUED)
			coop_phase_stopped(process, false);
		return;
	}
	coop_registry_clear_pid(process);
	(void)coop_process_ref(process);
	/* The end is recorded after the start. */
	if (process->spawn)
		coop_spawn_root_gone(process->spawn, wait_status(code, status), &usage);
	if (!process->spawn && boxed)
		namespace_gone(process, wait_status(code, status), &usage);
	else if (!process->spawn && !coop_process_reaped(process))
		coop_report_ended(process, wait_status(code, status), &usage);
	if (!process->spawn)
		coop_report_root_reaped(process);
	coop_process_unref(process);
}

static void launcher_reported(struct coop_launcher *launcher)
{
	int code, status;
	struct rusage usage;

	if (launcher->pid && consume(launcher->pid, &code, &status, &usage))
		coop_launcher_died(launcher);
}

static void launchers_reported(struct coop_keeper *keeper)
{
	COOP_LIST_EACH(coop_launchers_all(keeper), link)
	{
		launcher_reported(COOP_LIST_ITEM(link, struct coop_launcher, in_all));
	}
}

static void slot_reported(struct coop_keeper *keeper, pid_t pid)
{
	int code = 0, status;
	struct rusage usage;

	if (consume(pid, &code, &status, &usage))
		coop_slots_died(keeper, pid);
	else if (code == CLD_STOPPED)
		coop_slots_stopped(keeper, pid);
}

static void orphan_reported(struct coop_reaper *reaper, struct coop_keeper *keeper, pid_t pid)
{
	/* Whose it was must be asked before it is reaped: afterwards nobody knows. */
	uint64_t n = coop_orphans_owner_of_dead(keeper, pid);
	struct coop_process *process = n ? coop_registry_by_number(keeper, n) : NULL;
	struct rusage usage = {0};
	int code, status;

	if (!consume(pid, &code, &status, &usage))
		return;
	coop_eviction_look(keeper);
	coop_tree_unsweep(keeper); /* whoever was said to have orphans may have none any more */
	if (!process)
		return;
	process->usage.reaped_cpu_ns += coop_report_cpu_ns(&usage);
	reaper->recount = reaper->recount || coop_process_told(process);
	coop_kill_look_again(process);
}

/* A dead child that nobody knows is an orphan, or a process whose spawn has not been answered yet.
 * It stays unreaped, hence its pid unused, until every spawn that was on its way when it was met
 * has been answered. */
static bool must_wait(struct coop_reaper *reaper, const struct coop_keeper *keeper, pid_t pid)
{
	if (reaper->pid != pid) {
		reaper->pid = pid;
		reaper->blocked = coop_launchers_sequence(keeper);
	}
	if (coop_launchers_answered(keeper) < reaper->blocked)
		return true;
	reaper->pid = 0;
	return false;
}

/* One report at a time, and each child is looked up while its pid is still taken. */
static void reap(struct coop_reaper *reaper, struct coop_keeper *keeper)
{
	for (;;) {
		siginfo_t info = {0};
		if (waitid(P_ALL, 0, &info, WEXITED | WSTOPPED | WCONTINUED | WNOHANG | WNOWAIT) <
			    0 ||
		    info.si_pid == 0)
			return;
		pid_t pid = info.si_pid;
		struct coop_process *process = coop_registry_by_pid(keeper, pid);
		if (process) {
			leader_reported(process);
		} else if (coop_launcher_by_pid(keeper, pid)) {
			launcher_reported(coop_launcher_by_pid(keeper, pid));
		} else if (coop_slots_has(keeper, pid)) {
			slot_reported(keeper, pid);
		} else if (must_wait(reaper, keeper, pid)) {
			/* What it waits for may never come: the launcher may be dead, behind it in
			 * the kernel's list. */
			launchers_reported(keeper);
			return;
		} else {
			orphan_reported(reaper, keeper, pid);
		}
	}
}

static void on_due(struct coop_later *item)
{
	struct coop_main *main = COOP_LATER_OWNER(item, struct coop_main, life.reap);
	struct coop_reaper *reaper = &main->reaper;

	if (!reaper->due && !reaper->pid)
		return;
	reaper->due = false;
	/* Looking for what has ended takes memory, and gives more back. */
	bool before = coop_mem_relief(true);
	reap(reaper, &main->keeper);
	if (reaper->recount) {
		reaper->recount = false;
		coop_orphans_recount(&main->keeper);
	}
	(void)coop_mem_relief(before);
}

static void on_child(uv_poll_t *poll, int status, int events)
{
	struct coop_main *main = poll->data;
	struct signalfd_siginfo info[16];

	(void)status;
	(void)events;
	main->keeper.meters->wakeups++;
	ssize_t n = read(main->reaper.fd, info, sizeof info);
	for (ssize_t i = 0; i < n / (ssize_t)sizeof info[0]; i++) {
		struct coop_process *process =
			coop_registry_by_pid(&main->keeper, (pid_t)info[i].ssi_pid);
		if (process)
			leader_reported(process);
	}
	/* Several deaths may share one signal, and orphans die too: all that is looked for once the
	 * answers are out. */
	main->reaper.due = true;
	coop_life_reap(&main->keeper);
}

/* SIGCHLD comes through a descriptor: two system calls and a pipe less than libuv's way, on the
 * path of every exit. */
int coop_reap_init(struct coop_main *main)
{
	struct coop_reaper *reaper = &main->reaper;
	sigset_t child;

	main->life.reap.run = on_due;
	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	if (sigprocmask(SIG_BLOCK, &child, NULL) < 0)
		return -errno;
	reaper->fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (reaper->fd < 0)
		return -errno;
	int r = uv_poll_init(&main->keeper.loop, &reaper->poll, reaper->fd);
	reaper->poll.data = main;
	return r < 0 ? r : uv_poll_start(&reaper->poll, UV_READABLE, on_child);
}
