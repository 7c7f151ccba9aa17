#include "keeper/start/plans.h"

#include <unistd.h>

#include "base/io/memfd.h"
#include "keeper/confine/confine.h"
#include "keeper/confine/net.h"
#include "keeper/core/keeper.h"
#include "keeper/process/process.h"
#include "keeper/start/spawn.h"
#include "sandbox/layout/body.h"

static void set_plan(const struct coop_process *process, enum coop_plan_kind kind,
		     const struct coop_spawn_command *command, struct coop_plan *plan)
{
	const struct coop_confine *confine = process->confine;

	*plan = (struct coop_plan){
		.magic = COOP_PLAN_MAGIC,
		.kind = (uint32_t)kind,
		.flags = confine->flags & ~(uint32_t)COOP_PLAN_CWD_PATH,
		.namespaces = confine->namespaces,
		.net_id = confine->net ? confine->net->id : 0,
		.uid = confine->launcher.uid,
		.gid = confine->launcher.gid,
		.outer_uid = confine->launcher.other_ids ? confine->launcher.uid : geteuid(),
		.outer_gid = confine->launcher.other_ids ? confine->launcher.gid : getegid(),
		.filter = confine->filter,
		.landlock = confine->landlock,
		.scopes = confine->scopes,
		.mark = coop_place_of(process->keeper)->mark,
	};
	if (kind == COOP_PLAN_FILL)
		return;
	plan->flags |= (process->terms.pty ? COOP_PLAN_TERMINAL : 0u) |
		       (process->terms.on_exit == COOP_ON_EXIT_KILL ? COOP_PLAN_KILL_REST : 0u) |
		       (command->program_fd >= 0 ? COOP_PLAN_PROGRAM_FD : 0u);
	plan->mark = coop_place_of(process->keeper)->mark | process->n;
	plan->extra_fds = confine->start->tree_count;
	plan->op_first = kind == COOP_PLAN_GO ? confine->start->layout.base_ops : 0;
}

/* The same function makes all three kinds, so that FILL and GO together say what SPAWN says. */
int coop_plans_make(const struct coop_process *process, enum coop_plan_kind kind,
		    const struct coop_spawn_command *command, struct coop_buf *ret,
		    int *ret_body_fd)
{
	static const enum coop_body_part parts_of[] = {[COOP_PLAN_SPAWN] = COOP_BODY_ALL,
						       [COOP_PLAN_FILL] = COOP_BODY_BASE,
						       [COOP_PLAN_GO] = COOP_BODY_REST};
	const struct coop_confine *confine = process->confine;
	bool seen = confine->kind == COOP_CONFINE_NAMESPACES;
	struct coop_body parts = {
		.part = parts_of[kind],
		.layout = confine->kind == COOP_CONFINE_NONE ? NULL : &confine->start->layout,
		.limits = command ? confine->start->limits : NULL,
		.limit_count = command ? confine->start->limit_count : 0,
		.argv = command ? (const char *const *)command->argv : NULL,
		.envp = command ? (const char *const *)command->envp : NULL,
		.cwd = seen && command ? process->labels.cwd : NULL,
	};
	struct coop_plan plan;
	struct coop_buf body = {0};

	*ret_body_fd = -1;
	set_plan(process, kind, command, &plan);
	int r = coop_body_build(&parts, &plan, &body);
	if (r == 0 && sizeof plan + plan.body_size > COOP_PLAN_INLINE_MAX) {
		plan.flags |= COOP_PLAN_BODY_FD;
		r = *ret_body_fd =
			coop_memfd_sealed("coop-plan", coop_buf_front(&body), plan.body_size);
	}
	if (r >= 0)
		r = coop_buf_append(ret, &plan, sizeof plan);
	if (r >= 0 && !(plan.flags & COOP_PLAN_BODY_FD))
		r = coop_buf_append(ret, coop_buf_front(&body), plan.body_size);
	coop_buf_clear(&body);
	return r < 0 ? r : 0;
}
