#include "sandbox/child/apply.h"

#include <errno.h>
#include <unistd.h>

#include "sandbox/child/channel.h"
#include "sandbox/child/identity.h"
#include "sandbox/child/init.h"
#include "sandbox/child/rlimits.h"
#include "sandbox/child/view.h"
#include "sandbox/layout/body.h"

static _Noreturn void fail(int channel, enum coop_plan_step step, int error)
{
	errno = error;
	coop_channel_fail(channel, step, 0);
}

static bool makes_proc(const struct coop_plan_op *ops, uint32_t count)
{
	while (count && ops->kind != COOP_OP_PROC) {
		ops++;
		count--;
	}
	return count;
}

/* `counts`: to be set for the namespace; NULL: it has none of its own. */
static void make_view(const struct coop_payload *payload, const struct coop_plan_op *ops,
		      const struct coop_user_counts *counts, int channel, struct coop_view *view)
{
	const struct coop_plan *plan = payload->plan;
	uint32_t failed = 0;

	/* The host's /proc is read-only once the view is made. */
	if (counts && !makes_proc(ops, plan->op_count))
		coop_namespaces_bound_here(counts, true);
	if (!plan->op_count)
		return;
	coop_view_init(view);
	view->text = payload->text;
	view->counts = counts;
	view->extra_fds = payload->fds + COOP_PLAN_FD_COUNT;
	view->terminal = plan->flags & COOP_PLAN_TERMINAL ? payload->fds[COOP_PLAN_FD_STDIN] : -1;
	int r = coop_view_build(view, ops, plan->op_count, &failed);
	if (r == 0 && view->terminal >= 0)
		r = coop_view_console(view);
	if (r < 0) {
		errno = -r;
		coop_channel_fail(channel, COOP_STEP_MOUNTS, failed);
	}
}

/* The working directory, looked up in the view without following any link: what was swapped in
 * since it was checked fails. */
static void find_cwd(struct coop_payload *payload, const struct coop_view *view, int channel)
{
	payload->cwd = coop_view_target(view, payload->text + payload->plan->cwd);
	if (payload->cwd < 0)
		fail(channel, COOP_STEP_CHDIR, -payload->cwd);
}

_Noreturn void coop_apply(const struct coop_plan *plan, const char *body, const int *fds,
			  const struct coop_filters *filters, const struct coop_user_counts *counts)
{
	int channel = fds[COOP_PLAN_FD_CHANNEL];
	struct coop_plan_status cloned = {.event = COOP_PLAN_CLONED};
	struct coop_payload payload = {
		.plan = plan, .fds = fds, .filters = filters, .ruleset = -1, .cwd = -1};
	struct coop_body_view parts;
	struct coop_view view;

	(void)coop_channel_send(channel, &cloned, 0);
	int r = coop_payload_unpack(&payload, body, &parts);
	if (r < 0)
		fail(channel, COOP_STEP_BODY, -r);
	if (plan->flags & COOP_PLAN_MAP_SELF)
		r = coop_identity_map(plan->uid, plan->outer_uid, plan->gid, plan->outer_gid);
	if (r < 0)
		fail(channel, COOP_STEP_IDENTITY, -r);
	if (!(plan->flags & COOP_PLAN_MAP_SELF))
		counts = NULL;
	coop_channel_die_with_keeper(channel);
	/* Before it leaves the keeper's session, so that it is known at every moment. */
	coop_rlimits_mark(plan->mark);
	if (setsid() < 0)
		fail(channel, COOP_STEP_SESSION, errno);
	make_view(&payload, parts.ops, counts, channel, &view);
	if (plan->flags & COOP_PLAN_CWD_PATH)
		find_cwd(&payload, &view, channel);
	if (plan->kind == COOP_PLAN_FILL)
		coop_init_wait(&payload, &view, channel);
	if (plan->flags & COOP_PLAN_INIT)
		coop_init_run(&payload, channel);
	coop_payload_run(&payload);
}
