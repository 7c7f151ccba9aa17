/* The launcher: takes plans from the keeper and clones, so that the keeper, which may be large,
 * never forks.
 *
 * The children are the keeper's own (CLONE_PARENT): it gets their SIGCHLD, reaps them, and their
 * death signal follows it. The launcher holds no secrets and nothing that matters; killed, it takes
 * nothing with it and is started again. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io/fdpass.h"
#include "base/io/kernel.h"
#include "launcher/enter.h"
#include "launcher/network.h"
#include "launcher/probe.h"
#include "sandbox/child/apply.h"
#include "sandbox/child/namespaces.h"
#include "sandbox/layout/body.h"

static struct coop_filters filters;
static struct coop_user_counts counts; /* of each sandbox */

/* What every child is to begin with is set once, here: default dispositions, an empty mask. */
static void reset_signals(void)
{
	sigset_t none;
	/* All zero is SIG_DFL. The kernel's own call, as the C library keeps two signals from its
	 * callers, and an ignored one would be inherited. It fails for KILL and STOP, which have no
	 * disposition. */
	static const unsigned long standard[8];

	for (int number = 1; number < NSIG; number++)
		(void)syscall(SYS_rt_sigaction, number, standard, NULL, sizeof(unsigned long));
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The filters stay mapped; children inherit the pages. */
static int load_filters(void)
{
	struct stat status;

	if (fstat(COOP_LAUNCHER_FD_FILTERS, &status) < 0)
		return -errno;
	char *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE,
			   COOP_LAUNCHER_FD_FILTERS, 0);
	if (bytes == MAP_FAILED)
		return -errno;
	size_t at = 0, size = (size_t)status.st_size;
	for (unsigned i = 1;
	     i < sizeof filters.program / sizeof filters.program[0] && at + 8 <= size; i++) {
		uint32_t count;
		memcpy(&count, bytes + at, sizeof count);
		at += 8;
		if (count > BPF_MAXINSNS || at + count * sizeof(struct sock_filter) > size)
			return -EPROTO;
		filters.program[i].len = (unsigned short)count;
		filters.program[i].filter = (struct sock_filter *)(void *)(bytes + at);
		at += count * sizeof(struct sock_filter);
	}
	(void)close(COOP_LAUNCHER_FD_FILTERS);
	return 0;
}

static long clone_child(const struct coop_plan *plan, const char *body, const int *fds)
{
	/* exit_signal must be 0 with CLONE_PARENT; the child inherits the launcher's own,
	 * SIGCHLD. */
	struct clone_args args = {.flags = (uint64_t)CLONE_PARENT | plan->namespaces};

	if (plan->flags & COOP_PLAN_CGROUP_FD) {
		args.flags |= CLONE_INTO_CGROUP;
		args.cgroup = (unsigned)fds[COOP_PLAN_FD_CGROUP];
	}
	long pid = syscall(SYS_clone3, &args, sizeof args);
	/* Filters of containers do not know it, as what it is asked for stands in memory. The older
	 * call cannot clone into a group. */
	if (pid < 0 && (errno == ENOSYS || errno == EPERM) && !(plan->flags & COOP_PLAN_CGROUP_FD))
		pid = syscall(SYS_clone, args.flags, NULL, NULL, NULL, NULL);
	if (pid == 0) {
		/* Held open here, it would keep the plans alive that a dead launcher never read. */
		(void)close(COOP_LAUNCHER_FD_SOCKET);
		coop_apply(plan, body, fds, &filters, &counts);
	}
	return pid;
}

static void reply(const struct coop_plan_reply *message, int fd)
{
	if (coop_fdpass_send(COOP_LAUNCHER_FD_SOCKET, message, sizeof *message, &fd, fd >= 0) < 0)
		_exit(1);
}

static void carry_out(const struct coop_plan *plan, const char *body, const int *fds)
{
	struct coop_plan_reply answer = {.sequence = plan->sequence};
	int made, r = coop_network_enter(plan, fds[COOP_PLAN_FD_NET], &made);

	if (r < 0) {
		answer.error = -r;
		answer.step = COOP_STEP_NETWORK;
	} else {
		long pid = clone_child(plan, body, fds);
		answer.pid = pid > 0 ? (int32_t)pid : 0;
		answer.error = pid > 0 ? 0 : errno;
		answer.step = COOP_STEP_CLONE;
	}
	answer.net = made >= 0;
	reply(&answer, made);
	coop_network_leave();
}

/* Says how the start went, and hands over the user namespace, which the next launcher is to
 * join. */
static void hello(enum coop_launcher_kind kind, int error, enum coop_plan_step step)
{
	struct coop_plan_reply answer = {.error = error, .step = (uint32_t)step};
	int fd = kind == COOP_LAUNCHER_PLAIN || error
			 ? -1
			 : open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);

	reply(&answer, fd);
	if (fd >= 0)
		(void)close(fd);
	if (error)
		_exit(1);
}

/* One sandbox must not use up what all of its user share: programs need an instance or two, and
 * many watches. */
static void share_counts(void)
{
	coop_namespaces_counts(&counts);
	counts.instances = (counts.instances + 3) / 4;
	counts.watches = (counts.watches + 1) / 2;
}

static void prepare(char **argv)
{
	struct coop_enter enter;
	int r = coop_enter_parse(argv, &enter);

	if (r < 0)
		_exit(1);
	r = coop_enter_identity(&enter, argv);
	if (r < 0)
		hello(enter.kind, -r, COOP_STEP_IDENTITY);
	/* Should it fail, end of file on the socket ends us too. After the change of ids, which
	 * clears it. */
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	r = load_filters();
	if (r < 0)
		hello(enter.kind, -r, COOP_STEP_SECCOMP);
	if (enter.kind == COOP_LAUNCHER_PROBE)
		coop_probe(&filters);
	if (enter.kind != COOP_LAUNCHER_PLAIN)
		r = coop_enter_namespaces(&enter);
	if (r < 0)
		hello(enter.kind, -r, COOP_STEP_IDENTITY);
	share_counts();
	if (enter.kind == COOP_LAUNCHER_BOX)
		r = coop_network_init();
	if (r < 0)
		hello(enter.kind, -r, COOP_STEP_NETWORK);
	(void)syscall(SYS_close_range, COOP_LAUNCHER_FD_IMAGE, COOP_LAUNCHER_FD_USERNS, 0);
	hello(enter.kind, 0, COOP_STEP_CLONE);
}

int main(int argc, char **argv)
{
	static union {
		struct coop_plan plan;
		char bytes[COOP_PLAN_INLINE_MAX];
	} message;
	int received[COOP_FDPASS_MAX], fds[COOP_PLAN_FD_COUNT + COOP_PLAN_EXTRA_FDS_MAX];
	size_t count = 0;

	(void)argc;
	reset_signals();
	prepare(argv);
	(void)fcntl(COOP_LAUNCHER_FD_SOCKET, F_SETFD, FD_CLOEXEC);
	for (;;) {
		ssize_t size = coop_fdpass_receive(COOP_LAUNCHER_FD_SOCKET, &message,
						   sizeof message, received, &count);
		if (size <= 0)
			_exit(size < 0);
		if (message.plan.kind == COOP_PLAN_FORGET && (size_t)size == sizeof message.plan) {
			coop_network_forget(message.plan.net_id);
			continue;
		}
		if (coop_body_receive(&message.plan, (size_t)size, received, count, fds) < 0 ||
		    message.plan.filter >= sizeof filters.program / sizeof filters.program[0])
			_exit(1);
		carry_out(&message.plan, message.bytes + sizeof message.plan, fds);
		for (size_t i = 0; i < count; i++)
			(void)close(received[i]);
	}
}
