/* The launcher: takes plans from the keeper and clones, so that the keeper, which may be large, never forks.
 *
 * The children are the keeper's own (CLONE_PARENT): it gets their SIGCHLD, reaps them, and their death signal follows it. The
 * launcher holds no state and no secrets; killed, it takes nothing with it and is started again. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/fdpass.h"
#include "sandbox/apply.h"

/* What every child is to begin with is set once, here: default dispositions, an empty mask. */
static void reset_signals(void)
{
	sigset_t none;
	/* All zero is SIG_DFL. The kernel's own call, as the C library keeps two signals from its callers, and an ignored one
	 * would be inherited. It fails for KILL and STOP, which have no disposition. */
	static const unsigned long standard[8];

	for (int number = 1; number < NSIG; number++)
		(void)syscall(SYS_rt_sigaction, number, standard, NULL, sizeof(unsigned long));
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static int valid(const struct coop_plan *plan, size_t size, size_t fd_count)
{
	int body_fd = (plan->flags & COOP_PLAN_BODY_FD) != 0;

	return size >= sizeof *plan && plan->magic == COOP_PLAN_MAGIC && plan->argc > 0 &&
	       fd_count == (size_t)COOP_PLAN_FD_BODY + (size_t)body_fd &&
	       (body_fd || size == sizeof *plan + plan->body_size);
}

static void carry_out(const struct coop_plan *plan, const char *body, const int *fds)
{
	/* exit_signal must be 0 with CLONE_PARENT; the child inherits the launcher's own, SIGCHLD. */
	struct clone_args args = {.flags = CLONE_PARENT};
	long pid = syscall(SYS_clone3, &args, sizeof args);

	if (pid == 0) {
		/* Held open here, it would keep the plans alive that a dead launcher never read. */
		(void)close(COOP_PLAN_LAUNCHER_FD);
		coop_apply(plan, body, fds);
	}
	struct coop_plan_reply reply = {
		.sequence = plan->sequence,
		.pid = pid > 0 ? (int32_t)pid : 0,
		.error = pid > 0 ? 0 : errno,
	};
	if (coop_fdpass_send(COOP_PLAN_LAUNCHER_FD, &reply, sizeof reply, NULL, 0) < 0)
		_exit(1);
}

int main(void)
{
	static union {
		struct coop_plan plan;
		char bytes[COOP_PLAN_INLINE_MAX];
	} message;
	int fds[COOP_FDPASS_MAX];
	size_t fd_count = 0;

	reset_signals();
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0,
		    0); /* should it fail, end of file on the socket ends us too */
	(void)fcntl(COOP_PLAN_LAUNCHER_FD, F_SETFD, FD_CLOEXEC);
	for (;;) {
		ssize_t size = coop_fdpass_receive(COOP_PLAN_LAUNCHER_FD, &message, sizeof message,
						   fds, &fd_count);
		if (size <= 0)
			_exit(size < 0);
		if (!valid(&message.plan, (size_t)size, fd_count))
			_exit(1);
		carry_out(&message.plan, message.bytes + sizeof message.plan, fds);
		for (size_t i = 0; i < fd_count; i++)
			(void)close(fds[i]);
	}
}
