#include "keeper/confine/groups.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "keeper/conf/conf.h"
#include "keeper/confine/cells.h"
#include "keeper/confine/confine.h"
#include "keeper/confine/draft.h"
#include "keeper/confine/parks.h"
#include "keeper/core/keeper.h"
#include "keeper/host/host.h"
#include "keeper/launch/launcher.h"
#include "keeper/owner/agent.h"
#include "keeper/process/process.h"
#include "keeper/process/registry.h"
#include "sandbox/policy/protection.h"

#define PATH_BYTES 1024
#define CELL_IDLE_MS 10000u
#define SECOND_WALL 16u /* processes */
#define CELL_RETRY_MS 200u

/* Of one keeper on this host, the same each time: nobody else has its state folder, or its pid. */
static void name_keeper(const struct coop_keeper *keeper, char ret[32])
{
	const char *text = *coop_place_of(keeper)->state_dir ? coop_place_of(keeper)->state_dir
							     : coop_place_of(keeper)->socket;
	uint64_t hash = UINT64_C(14695981039346656037);

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
	/* One in a container may have a folder of the same name. */
	struct stat folder;
	if (stat(*coop_place_of(keeper)->state_dir ? coop_place_of(keeper)->state_dir : "/",
		 &folder) == 0)
		hash ^= (uint64_t)folder.st_ino * UINT64_C(1099511628211) ^ folder.st_dev;
	if (coop_place_of(keeper)->private_mode)
		hash ^= (uint64_t)getpid() << 32;
	(void)snprintf(ret, 32, "%u-%08x", geteuid(), (unsigned)(hash ^ hash >> 32));
}

const struct coop_cgroups *coop_groups_host(struct coop_keeper *keeper)
{
	struct coop_groups *groups = coop_groups_of(keeper);
	char name[32];

	if (groups->known)
		return &groups->host;
	groups->known = true;
	name_keeper(keeper, name);
	coop_cgroups_init(&groups->host, name);
	if (groups->host.unified && coop_host_of(keeper)->root_keeper)
		(void)coop_cgroups_delegate(&groups->host, coop_host_of(keeper)->can.uid,
					    coop_host_of(keeper)->can.gid);
	return &groups->host;
}

static bool limited(const struct coop_sandbox_limits *limits)
{
	return limits->memory_bytes || limits->cpu_quota_millis || limits->max_pids;
}

/* Whether an agent at or above it has limits for all below it. */
static bool agents_limited(const struct coop_agent *agent)
{
	for (; agent; agent = agent->parent) {
		if (limited(&agent->settings.sandbox.limits))
			return true;
	}
	return false;
}

void coop_groups_shares(const struct coop_agent *agent, struct coop_sandbox_limits *ret)
{
	const struct coop_keeper *keeper = agent->keeper;

	*ret = (struct coop_sandbox_limits){0};
	/* The one client of a private keeper is who answers for all that it starts. */
	if (!coop_place_of(keeper)->private_mode)
		coop_shares_lay(&coop_conf_of(keeper)->profiles.shares,
				&coop_groups_of(keeper)->machine, !agent->parent, ret);
}

/* What this host has no controllers for is nothing. */
static void mask(const struct coop_cgroups *host, struct coop_sandbox_limits *limits)
{
	if (!host->version[COOP_CG_MEMORY])
		limits->memory_bytes = 0;
	if (!host->version[COOP_CG_CPU])
		limits->cpu_quota_millis = 0;
	if (!host->version[COOP_CG_PIDS])
		limits->max_pids = 0;
}

/* What holds for an agent with all below it: what was set for it, else its share. */
static struct coop_sandbox_limits agent_limits(const struct coop_agent *agent)
{
	struct coop_sandbox_limits limits = agent->settings.sandbox.limits, shares;

	coop_groups_shares(agent, &shares);
	if (!limits.memory_bytes)
		limits.memory_bytes = shares.memory_bytes;
	if (!limits.max_pids)
		limits.max_pids = shares.max_pids;
	mask(&coop_groups_of(agent->keeper)->host, &limits);
	return limits;
}

/* What was set for it, or its share: either needs a group. */
static bool agent_limited(const struct coop_agent *agent)
{
	const struct coop_sandbox_limits limits = agent_limits(agent);

	return limited(&limits);
}

bool coop_groups_shared(const struct coop_agent *agent)
{
	const struct coop_cgroups *host = coop_groups_host(agent->keeper);
	struct coop_sandbox_limits shares;

	coop_groups_shares(agent, &shares);
	mask(host, &shares);
	return limited(&shares);
}

/* What groups are to hold. One that is not to be had was refused before, unless it was
 * tolerated. */
static struct coop_sandbox_limits held_limits(const struct coop_keeper *keeper,
					      const struct coop_confine *confine)
{
	struct coop_sandbox_limits limits = confine->policy.limits;

	mask(&coop_groups_of(keeper)->host, &limits);
	if (confine->policy.limits_builtin & COOP_PROTECT_BIT(COOP_PROTECT_PIDS))
		limits.max_pids = 0;
	return limits;
}

static bool needs_group(const struct coop_agent *agent, const struct coop_confine *confine)
{
	const struct coop_sandbox_limits *limits = &confine->policy.limits;
	/* In a user namespace of its own the kernel counts for it alone, at no cost. */
	bool boxed = confine->namespaces & CLONE_NEWUSER;
	/* Nobody asked for it: where it would cost something its agent's share must do. */
	bool builtin = confine->policy.limits_builtin & COOP_PROTECT_BIT(COOP_PROTECT_PIDS);

	return limits->memory_bytes || limits->cpu_quota_millis ||
	       (limits->max_pids && !boxed && !builtin) || agents_limited(agent);
}

static void hold(struct coop_keeper *keeper, struct coop_confine *confine,
		 enum coop_protection what, enum coop_controller controller)
{
	const struct coop_cgroups *host = coop_groups_host(keeper);
	bool there = host->version[controller] != 0;

	confine->achieved->asked |= COOP_PROTECT_BIT(what);
	coop_held_set(confine->achieved, what, there ? COOP_ENFORCED : COOP_NONE,
		      there ? coop_cgroup_mechanism(host, controller) : NULL, there ? NULL : "%s",
		      host->why[controller]);
}

/* Whether the processes of many commands count together. */
static bool counts_together(const struct coop_agent *agent)
{
	for (; agent; agent = agent->parent) {
		if (agent->settings.sandbox.limits.max_pids)
			return true;
	}
	return false;
}

/* The group is the one that counts what it refuses: the limit of the user namespace, which the
 * kernel looks at first, becomes a second wall behind it. */
static void step_back(struct coop_confine *confine)
{
	for (uint32_t i = 0; i < confine->start->limit_count; i++) {
		struct coop_plan_limit *limit = &confine->start->limits[i];
		if (limit->resource == RLIMIT_NPROC)
			limit->soft = limit->hard = limit->hard + SECOND_WALL;
	}
}

/* Where there is no such controller the limit of the user namespace holds each command by itself;
 * that is said, not hidden. */
static void hold_processes(struct coop_keeper *keeper, const struct coop_agent *agent,
			   struct coop_confine *confine)
{
	const struct coop_cgroups *host = coop_groups_host(keeper);
	const struct coop_held held = confine->achieved->held[COOP_PROTECT_PIDS];

	if (host->version[COOP_CG_PIDS]) {
		hold(keeper, confine, COOP_PROTECT_PIDS, COOP_CG_PIDS);
		step_back(confine);
	} else if (counts_together(agent)) {
		coop_held_set(confine->achieved, COOP_PROTECT_PIDS,
			      held.strength == COOP_NONE ? COOP_NONE : COOP_PARTIAL, held.mechanism,
			      "each command is held by itself, all of an agent's only by a control "
			      "group: %s",
			      host->why[COOP_CG_PIDS]);
	}
}

void coop_groups_hold(struct coop_keeper *keeper, const struct coop_agent *agent,
		      struct coop_confine *confine)
{
	const struct coop_sandbox_limits *limits = &confine->policy.limits;

	if (limits->memory_bytes)
		hold(keeper, confine, COOP_PROTECT_MEMORY, COOP_CG_MEMORY);
	if (limits->cpu_quota_millis)
		hold(keeper, confine, COOP_PROTECT_CPU, COOP_CG_CPU);
	if (limits->max_pids && needs_group(agent, confine) &&
	    !(confine->policy.limits_builtin & COOP_PROTECT_BIT(COOP_PROTECT_PIDS)))
		hold_processes(keeper, agent, confine);
}

/* A group that somebody is still in, or a group below: it is asked again until it is gone. */
struct left {
	struct coop_link in_all;
	struct coop_cgroup group;
};

/* No event tells that the last process has left a group: it is asked again until it can be
 * removed. */
static void on_timer(uv_timer_t *timer)
{
	struct coop_keeper *keeper = timer->data;
	struct coop_groups *groups = coop_groups_of(keeper);
	uint64_t now = uv_now(coop_loop_of(keeper));
	bool again, waiting = coop_cells_look(keeper, now >= groups->cells_until, &again);

	COOP_LIST_EACH(&groups->left, link)
	{
		struct left *left = COOP_LIST_ITEM(link, struct left, in_all);
		if (coop_cgroup_remove(&groups->host, &left->group) == -EBUSY) {
			again = true;
			continue;
		}
		coop_list_remove(&left->in_all);
		coop_cgroup_clear(&left->group);
		free(left);
	}
	if (again || waiting)
		(void)uv_timer_start(timer, on_timer,
				     again ? CELL_RETRY_MS : groups->cells_until - now, 0);
}

/* Removes a group, now or as soon as nobody is in it. */
static void give_up(struct coop_keeper *keeper, struct coop_cgroup *group)
{
	struct coop_groups *groups = coop_groups_of(keeper);
	struct left *left;

	if (coop_cgroup_remove(&groups->host, group) != -EBUSY) {
		coop_cgroup_clear(group);
		return;
	}
	left = coop_mem_zalloc(sizeof *left);
	if (left) {
		left->group = *group;
		*group = (struct coop_cgroup){.fd = -1};
		coop_list_add(&groups->left, &left->in_all);
		(void)uv_timer_start(&groups->timer, on_timer, CELL_RETRY_MS, 0);
	}
	coop_cgroup_clear(group); /* without memory it goes with the keeper */
}

struct coop_groups *coop_groups_new(struct coop_keeper *keeper)
{
	struct coop_groups *groups = coop_mem_zalloc(sizeof *groups);

	if (!groups)
		return NULL;
	coop_list_init(&groups->cells);
	coop_list_init(&groups->left);
	(void)uv_timer_init(coop_loop_of(keeper), &groups->timer);
	groups->timer.data = keeper;
	/* An earlier keeper of this place may have been killed. One without a place has no earlier
	 * one. */
	if (!coop_place_of(keeper)->private_mode) {
		char name[32];
		name_keeper(keeper, name);
		coop_cgroups_clean(name);
	}
	/* At once: of what a first command's agent may use its record tells. */
	coop_machine_look(&groups->machine);
	return groups;
}

const struct coop_cgroups *coop_groups_known(const struct coop_keeper *keeper)
{
	return &coop_groups_of(keeper)->host;
}

/* Only agents that have limits have groups; each lies in those above it. "" for none. */
static int agent_path(const struct coop_agent *agent, char *ret, size_t size)
{
	if (!agent) {
		*ret = 0;
		return 0;
	}
	int r = agent_path(agent->parent, ret, size);
	size_t used = strlen(ret);
	if (r < 0 || !agent_limited(agent))
		return r;
	int n = snprintf(ret + used, size - used, "%sa-%lld", used ? "/" : "",
			 (long long)agent->id);
	return n < 0 || (size_t)n >= size - used ? -ENAMETOOLONG : 0;
}

/* From the top, as each lies in the one above it. */
static int make_agents(const struct coop_cgroups *host, struct coop_agent *agent,
		       struct coop_err *err)
{
	char path[PATH_BYTES];

	if (!agent)
		return 0;
	int r = make_agents(host, agent->parent, err);
	const struct coop_sandbox_limits limits = agent_limits(agent);
	if (r < 0 || !limited(&limits))
		return r;
	r = agent_path(agent, path, sizeof path);
	if (r < 0)
		return coop_err_no_memory(err);
	if (agent->group.path && !strcmp(agent->group.path, path))
		return 0;
	/* Somebody above has got limits since, or lost them: from now on its processes are in
	 * another place. */
	if (agent->group.path)
		give_up(agent->keeper, &agent->group);
	return coop_cgroup_make(host, path, &limits, false, &agent->group, err);
}

bool coop_groups_rest(struct coop_agent *agent)
{
	static const struct coop_sandbox_limits none;
	const struct coop_cgroups *host = coop_groups_host(agent->keeper);
	char parent[PATH_BYTES - 8], path[PATH_BYTES];
	struct coop_err err;

	if (make_agents(host, agent, &err) < 0 || agent_path(agent, parent, sizeof parent) < 0)
		return false;
	(void)snprintf(path, sizeof path, "%s/rest", parent);
	if (agent->rest.path && !strcmp(agent->rest.path, path))
		return true;
	if (agent->rest.path)
		give_up(agent->keeper, &agent->rest);
	return coop_cgroup_make(host, path, &none, false, &agent->rest, &err) == 0;
}

/* In any hierarchy of version 1 nothing can be cloned into a group. */
static bool version_one(const struct coop_cgroups *host, const struct coop_cgroup *group)
{
	for (int i = 0; i < COOP_CG_COUNT; i++) {
		if ((group->used & 1u << i) && host->version[i] == 1)
			return true;
	}
	return false;
}

int coop_groups_place(struct coop_draft *draft, struct coop_confine *confine)
{
	struct coop_keeper *keeper = draft->agent->keeper;
	char parent[PATH_BYTES] = "", path[PATH_BYTES + 32];

	if (!needs_group(draft->agent, confine)) {
		coop_parks_enter(draft->agent, confine);
		return 0;
	}
	const struct coop_cgroups *host = coop_groups_host(keeper);
	struct coop_sandbox_limits limits = held_limits(keeper, confine);
	if (!limited(&limits))
		return 0;
	int r = make_agents(host, draft->agent, draft->err);
	if (r == 0 && agent_path(draft->agent, parent, sizeof parent) < 0)
		r = coop_err_no_memory(draft->err);
	if (r < 0)
		return r;
	struct coop_launcher_class class = confine->launcher;
	if (!coop_cells_take(keeper, parent, confine, &limits)) {
		(void)snprintf(path, sizeof path, "%s%sp-%llu", parent, *parent ? "/" : "",
			       (unsigned long long)coop_registry_next(keeper));
		r = coop_cgroup_make(host, path, &limits, false, &confine->group, draft->err);
		if (r < 0)
			return r;
		const struct coop_launcher *launcher =
			coop_cells_park(keeper, &confine->group, class);
		if (!launcher)
			r = coop_err_no_memory(draft->err);
		else
			confine->launcher = launcher->class;
	}
	confine->grouped = confine->shared = true;
	coop_groups_of(keeper)->cells_until = uv_now(coop_loop_of(keeper)) + CELL_IDLE_MS;
	if (!uv_is_active((uv_handle_t *)&coop_groups_of(keeper)->timer))
		(void)uv_timer_start(&coop_groups_of(keeper)->timer, on_timer, CELL_IDLE_MS, 0);
	confine->flags |= confine->group.fd >= 0 ? COOP_PLAN_CGROUP_FD : 0u;
	if (r == 0 && version_one(host, &confine->group))
		coop_cells_prepare(keeper, parent, &class);
	return r;
}

/* Of a group that many are in the kernel only counts how often it killed: who was killed since the
 * last look is one of them. */
static void count_rest(struct coop_agent *agent, struct coop_confine *confine)
{
	struct coop_cgroup_facts facts = {0};

	coop_cgroup_facts(&coop_groups_of(agent->keeper)->host, &agent->rest, &facts);
	if (facts.oom_kills <= agent->oom_kills)
		return;
	confine->counted.oom_kills = facts.oom_kills - agent->oom_kills;
	confine->counted.memory_peak = facts.memory_peak;
	agent->oom_kills = facts.oom_kills;
}

/* Before the cause is judged: what the kernel counted may be the reason. Of a group that many share
 * it is looked at only after a SIGKILL. */
void coop_groups_count(struct coop_process *process, int wait_status)
{
	struct coop_confine *confine = process->confine;
	bool killed = (WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL) ||
		      (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 128 + SIGKILL);

	if (confine && confine->grouped)
		coop_cgroup_facts(&coop_groups_of(process->keeper)->host, &confine->group,
				  &confine->counted);
	else if (confine && confine->parked && killed && process->agent->rest.path)
		count_rest(process->agent, confine);
}

void coop_groups_leave(struct coop_process *process)
{
	struct coop_confine *confine = process->confine;

	if (confine->freezer.path)
		give_up(process->keeper, &confine->freezer);
	if (!confine->grouped)
		return;
	/* One that was never asked anything sits in it still. */
	if (!confine->launched && confine->launcher.cell) {
		struct coop_launcher *launcher =
			coop_launcher_get(process->keeper, &confine->launcher);
		if (launcher)
			coop_launcher_retire(launcher);
	}
	(void)coop_cgroup_kill(&coop_groups_of(process->keeper)->host, &confine->group);
	give_up(process->keeper, &confine->group);
	confine->grouped = false;
}

/* In place: its processes are in the group, and stay there. */
void coop_groups_agent_changed(struct coop_agent *agent)
{
	const struct coop_sandbox_limits limits = agent_limits(agent);

	if (agent->group.path)
		(void)coop_cgroup_limit(&coop_groups_of(agent->keeper)->host, &agent->group,
					&limits);
}

void coop_groups_conf_changed(struct coop_keeper *keeper)
{
	COOP_LIST_EACH(coop_agents_principals(keeper), link)
	{
		struct coop_agent *first =
			COOP_LIST_ITEM(link, struct coop_principal, in_keeper)->first;
		for (struct coop_agent *agent = NULL;
		     first && (agent = coop_agent_next(first, agent));)
			coop_groups_agent_changed(agent);
	}
}

void coop_groups_agent_removed(struct coop_agent *agent)
{
	struct coop_keeper *keeper = agent->keeper;

	coop_parks_drop(agent);
	if (agent->rest.path)
		give_up(keeper, &agent->rest);

	if (!agent->group.path)
		return;
	coop_cells_drop_below(keeper, agent->group.path);
	(void)uv_timer_start(&coop_groups_of(keeper)->timer, on_timer, CELL_RETRY_MS, 0);
	give_up(keeper, &agent->group);
}

void coop_groups_drop_cells(struct coop_keeper *keeper)
{
	struct coop_groups *groups = coop_groups_of(keeper);

	(void)uv_timer_stop(&groups->timer);
	coop_parks_free(keeper);
	coop_cells_free(keeper);
}

void coop_groups_free(struct coop_keeper *keeper)
{
	struct coop_groups *groups = coop_groups_of(keeper);

	while (groups->left.next && !coop_list_empty(&groups->left)) {
		struct left *left = COOP_LIST_ITEM(groups->left.next, struct left, in_all);
		coop_list_remove(&left->in_all);
		coop_cgroup_clear(&left->group);
		free(left);
	}
	if (groups->known)
		coop_cgroups_free(&groups->host);
}
