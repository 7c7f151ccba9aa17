#include "sandbox/child/init.h"

#include <errno.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/fdpass.h"
#include "sandbox/child/call.h"
#include "sandbox/child/capabilities.h"
#include "sandbox/child/channel.h"
#include "sandbox/child/reach.h"
#include "sandbox/layout/body.h"

#define STACK_SIZE 65536

static _Alignas(16) char stack[STACK_SIZE];
static volatile struct coop_plan_status failure;
static uint64_t unreachable_before;

static void keep_only(int channel)
{
	if (channel > 0)
		(void)syscall(SYS_close_range, 0, channel - 1, 0);
	(void)syscall(SYS_close_range, channel + 1, ~0u, 0);
}

/* The program's own; on memory that we share with it a failure is told there. */
static void begin_session(void)
{
	long r = coop_raw_call(SYS_setsid, 0, 0, 0, 0, 0);

	if (r < 0) {
		failure.step = COOP_STEP_SESSION;
		failure.error = (int)-r;
		failure.event = COOP_PLAN_FAILED;
		_exit(126);
	}
}

static int run_payload(void *user)
{
	struct coop_payload *payload = user;

	begin_session();
	coop_payload_run(payload);
}

static uint64_t cpu_ns(const struct rusage *usage)
{
	return ((uint64_t)usage->ru_utime.tv_sec + (uint64_t)usage->ru_stime.tv_sec) * 1000000000u +
	       ((uint64_t)usage->ru_utime.tv_usec + (uint64_t)usage->ru_stime.tv_usec) * 1000u;
}

static void send_or_leave(int channel, const struct coop_plan_status *message)
{
	if (coop_channel_send(channel, message, 0) < 0)
		_exit(0); /* the keeper is gone */
}

/* Whether the program was the last: reaps what is dead already. */
static bool is_alone(void)
{
	pid_t pid;

	do
		pid = wait4(-1, NULL, WNOHANG, NULL);
	while (pid > 0);
	return pid < 0 && errno == ECHILD;
}

static void on_program(const struct coop_payload *payload, int channel, int status,
		       const struct rusage *usage)
{
	struct coop_plan_status message = {.wait_status = status};

	if (WIFSTOPPED(status) || WIFCONTINUED(status)) {
		message.event = WIFSTOPPED(status) ? COOP_PLAN_STOPPED : COOP_PLAN_CONTINUED;
		send_or_leave(channel, &message);
		return;
	}
	message.event = COOP_PLAN_EXITED;
	message.cpu_ns = cpu_ns(usage);
	message.peak_bytes = (uint64_t)usage->ru_maxrss * 1024;
	message.alone = is_alone();
	if (status)
		message.unreachable = coop_reach_refused() - unreachable_before;
	send_or_leave(channel, &message);
	/* The kernel ends what is left together with us. */
	if (message.alone || (payload->plan->flags & COOP_PLAN_KILL_REST))
		_exit(0);
}

_Noreturn static void reap(const struct coop_payload *payload, int channel, pid_t program)
{
	for (;;) {
		struct rusage usage;
		int status;
		pid_t pid = wait4(-1, &status, WUNTRACED | WCONTINUED, &usage);
		if (pid == program)
			on_program(payload, channel, status, &usage);
		else if (pid < 0 && errno != EINTR)
			_exit(0); /* nobody is left */
	}
}

/* The program has been executed or has failed, and shares nothing with us any more. */
static _Noreturn void report(struct coop_payload *payload, int channel, pid_t program)
{
	struct coop_plan_status message = {.event = COOP_PLAN_EXECUTED};

	if (failure.event) {
		message.event = failure.event;
		message.step = failure.step;
		message.error = failure.error;
	}
	if (coop_channel_send(channel, &message, failure.event ? 0 : program) < 0 || failure.event)
		_exit(126);
	keep_only(channel);
	(void)coop_capabilities_clear();
	/* The session's network may have been used by others before. */
	unreachable_before = coop_reach_refused();
	reap(payload, channel, program);
}

/* Nobody inside may look into us. */
static void close_up(int channel)
{
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		coop_channel_fail(channel, COOP_STEP_INIT, 0);
}

_Noreturn void coop_init_run(struct coop_payload *payload, int channel)
{
	payload->shared_failure = &failure;
	close_up(channel);
	/* The child runs on our memory until it executes: nothing is copied, and we go on exactly
	 * then. */
	pid_t program =
		clone(run_payload, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, payload);
	if (program < 0)
		coop_channel_fail(channel, COOP_STEP_INIT, 0);
	report(payload, channel, program);
}

/* Words between us and the parked child, on the memory that both share. */
static volatile int go_on, still_here;
static const struct coop_plan
	*parked_plan; /* what made the sandbox: payload->plan becomes another one meanwhile */

static void futex(volatile int *word, int operation, int value)
{
	(void)coop_raw_call(SYS_futex, (long)word, operation, value, 0, 0);
}

/* Has all that does not depend on the command in force, and waits. Meanwhile the first process may
 * be at the view: no errno here. */
static int park(void *user)
{
	struct coop_payload *payload = user;

	begin_session();
	coop_payload_restrict(payload, parked_plan);
	/* What the first process wrote before it said so is there, on every machine. */
	while (!__atomic_load_n(&go_on, __ATOMIC_ACQUIRE))
		futex(&go_on, FUTEX_WAIT, 0);
	coop_payload_run(payload);
}

/* The rest of the plan, from the keeper itself. */
static void receive_rest(struct coop_payload *payload, struct coop_view *view, int channel)
{
	static union {
		struct coop_plan plan;
		char bytes[COOP_PLAN_INLINE_MAX];
	} message;
	static int fds[COOP_PLAN_FD_COUNT + COOP_PLAN_EXTRA_FDS_MAX];
	struct coop_body_view body = {0};
	int received[COOP_FDPASS_MAX];
	size_t count = 0;
	uint32_t failed = 0;
	ssize_t size = coop_fdpass_receive(channel, &message, sizeof message, received, &count);

	if (size <= 0)
		_exit(0); /* it was not needed, or the keeper is gone */
	int r = coop_body_receive(&message.plan, (size_t)size, received, count, fds);
	fds[COOP_PLAN_FD_CHANNEL] = channel;
	if (r == 0) {
		payload->plan = &message.plan;
		payload->fds = fds;
		r = coop_payload_unpack(payload, message.bytes + sizeof message.plan, &body);
	}
	if (r < 0) {
		errno = -r;
		coop_channel_fail(channel, COOP_STEP_BODY, 0);
	}
	view->text = body.text;
	view->extra_fds = fds + COOP_PLAN_FD_COUNT;
	view->terminal = message.plan.flags & COOP_PLAN_TERMINAL ? fds[COOP_PLAN_FD_STDIN] : -1;
	r = coop_view_build(view, body.ops, message.plan.op_count, &failed);
	if (r == 0 && view->terminal >= 0)
		r = coop_view_console(view);
	if (r < 0) {
		errno = -r;
		coop_channel_fail(channel, COOP_STEP_MOUNTS, message.plan.op_first + failed);
	}
	payload->cwd = coop_view_target(view, body.text + message.plan.cwd);
	if (payload->cwd < 0) {
		errno = -payload->cwd;
		coop_channel_fail(channel, COOP_STEP_CHDIR, 0);
	}
}

_Noreturn void coop_init_wait(struct coop_payload *payload, struct coop_view *view, int channel)
{
	struct coop_plan_status ready = {.event = COOP_PLAN_READY};
	int r = coop_payload_begin_landlock(payload);

	if (r < 0) {
		errno = -r;
		coop_channel_fail(channel, COOP_STEP_LANDLOCK, 0);
	}
	payload->shared_failure = &failure;
	payload->shared = true;
	parked_plan = payload->plan;
	still_here = 1;
	close_up(channel);
	pid_t program = clone(park, stack + sizeof stack,
			      CLONE_VM | CLONE_FILES | CLONE_CHILD_CLEARTID | SIGCHLD, payload,
			      NULL, NULL, &still_here);
	if (program < 0)
		coop_channel_fail(channel, COOP_STEP_INIT, 0);
	if (coop_channel_send(channel, &ready, 0) < 0)
		_exit(0);
	receive_rest(payload, view, channel);
	__atomic_store_n(&go_on, 1, __ATOMIC_RELEASE);
	futex(&go_on, FUTEX_WAKE, 1);
	/* The kernel clears the word when the child leaves our memory: it has executed, or is
	 * gone. */
	while (still_here)
		futex(&still_here, FUTEX_WAIT, 1);
	report(payload, channel, program);
}
