#include "sandbox/child/payload.h"

#include <errno.h>
#include <linux/close_range.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sandbox/child/call.h"
#include "sandbox/child/capabilities.h"
#include "sandbox/child/channel.h"
#include "sandbox/child/landlock.h"
#include "sandbox/child/rlimits.h"

_Noreturn static void fail(const struct coop_payload *payload, enum coop_plan_step step, int error)
{
	if (!payload->shared_failure) {
		errno = error;
		coop_channel_fail(payload->fds[COOP_PLAN_FD_CHANNEL], step, 0);
	}
	payload->shared_failure->step = (uint32_t)step;
	payload->shared_failure->error = error;
	payload->shared_failure->event = COOP_PLAN_FAILED;
	_exit(step == COOP_STEP_EXEC && error == ENOENT ? 127 : 126);
}

int coop_payload_unpack(struct coop_payload *payload, const char *body, struct coop_body_view *ret)
{
	const struct coop_plan *plan = payload->plan;
	const char *bytes = body;

	if (plan->flags & COOP_PLAN_BODY_FD) {
		bytes = mmap(NULL, plan->body_size, PROT_READ | PROT_WRITE, MAP_PRIVATE,
			     payload->fds[COOP_PLAN_FD_BODY], 0);
		if (bytes == MAP_FAILED)
			return -errno;
	}
	if (!coop_body_valid(plan, bytes, plan->body_size, ret) ||
	    !plan->argc != (plan->kind == COOP_PLAN_FILL))
		return -EPROTO;
	payload->rules = ret->rules;
	payload->limits = ret->limits;
	payload->text = ret->text;
	return coop_program_unpack(plan, (char *)(uintptr_t)ret->text, ret->text + ret->text_size,
				   &payload->program);
}

void coop_payload_restrict(struct coop_payload *payload, const struct coop_plan *plan)
{
	long r = plan->flags & COOP_PLAN_NO_NEW_PRIVS
			 ? coop_raw_call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
			 : 0;

	if (r < 0)
		fail(payload, COOP_STEP_NO_NEW_PRIVS, (int)-r);
	r = plan->flags & COOP_PLAN_DROP_CAPS ? coop_capabilities_drop() : 0;
	if (r < 0)
		fail(payload, COOP_STEP_CAPABILITIES, (int)-r);
	/* Last of all: the filter refuses some of what came before. */
	if (plan->filter)
		r = coop_raw_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0,
				  (long)&payload->filters->program[plan->filter], 0, 0);
	if (r < 0)
		fail(payload, COOP_STEP_SECCOMP, (int)-r);
	payload->restricted = true;
}

int coop_payload_begin_landlock(struct coop_payload *payload)
{
	const struct coop_plan *plan = payload->plan;
	int r = 0;

	if (plan->landlock && payload->ruleset < 0)
		payload->ruleset = coop_landlock_open(plan->landlock, plan->scopes);
	if (plan->landlock && payload->ruleset < 0)
		return payload->ruleset;
	for (uint32_t i = 0; plan->landlock && r == 0 && i < plan->rule_count; i++)
		r = coop_landlock_allow(payload->ruleset, plan->landlock,
					payload->text + payload->rules[i].path,
					(enum coop_plan_access)payload->rules[i].access);
	return r;
}

static int landlock(struct coop_payload *payload)
{
	const struct coop_plan *plan = payload->plan;
	int r = coop_payload_begin_landlock(payload);

	/* So that it can be opened again, by /dev/stdout and the like. */
	if (r == 0 && (plan->flags & COOP_PLAN_TERMINAL))
		r = coop_landlock_allow_fd(payload->ruleset, plan->landlock, 0,
					   COOP_ACCESS_DEVICES);
	return r < 0 ? r : coop_landlock_enforce(payload->ruleset);
}

static void take_stdio(const struct coop_payload *payload)
{
	const int *fds = payload->fds;

	if ((payload->plan->flags & COOP_PLAN_TERMINAL) &&
	    ioctl(fds[COOP_PLAN_FD_STDIN], TIOCSCTTY, 0) < 0)
		fail(payload, COOP_STEP_TERMINAL, errno);
	for (int i = 0; i < 3; i++) {
		if (dup2(fds[i], i) < 0)
			fail(payload, COOP_STEP_STDIO, errno);
	}
}

static void enter_folder(const struct coop_payload *payload)
{
	int folder = payload->cwd >= 0 ? payload->cwd : payload->fds[COOP_PLAN_FD_CWD];

	if (fchdir(folder) < 0)
		fail(payload, COOP_STEP_CHDIR, errno);
}

_Noreturn void coop_payload_run(struct coop_payload *payload)
{
	const struct coop_plan *plan = payload->plan;
	int r;

	if (payload->shared && syscall(SYS_close_range, ~0u, ~0u, CLOSE_RANGE_UNSHARE) < 0)
		fail(payload, COOP_STEP_CLOSE_FDS, errno);
	take_stdio(payload);
	enter_folder(payload);
	coop_rlimits_mark(plan->mark);
	/* Not closed at once: the channel must be able to tell of a failure, and the ruleset is
	 * still needed. */
	if (syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		fail(payload, COOP_STEP_CLOSE_FDS, errno);
	if ((plan->flags & COOP_PLAN_NO_NEW_PRIVS) && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		fail(payload, COOP_STEP_NO_NEW_PRIVS, errno);
	/* After the mounts: a restricted process may not mount. */
	if (plan->landlock && (r = landlock(payload)) < 0)
		fail(payload, COOP_STEP_LANDLOCK, -r);
	/* After all that needs descriptors or memory of its own. */
	if ((r = coop_rlimits_set(payload->limits, plan->limit_count)) < 0)
		fail(payload, COOP_STEP_LIMITS, -r);
	if (!payload->restricted)
		coop_payload_restrict(payload, plan);
	if (plan->flags & COOP_PLAN_PROGRAM_FD)
		coop_program_execute_fd(&payload->program, payload->fds[COOP_PLAN_FD_PROGRAM]);
	else
		coop_program_execute(&payload->program);
	fail(payload, COOP_STEP_EXEC, errno);
}
