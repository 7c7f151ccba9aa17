#include "keeper/confine/parks.h"

#include <stdlib.h>

#include "base/io/log.h"
#include "base/mem.h"
#include "interface/err.h"
#include "keeper/confine/confine.h"
#include "keeper/confine/groups.h"
#include "keeper/core/keeper.h"
#include "keeper/launch/launcher.h"
#include "keeper/launch/launcher_start.h"
#include "keeper/owner/agent.h"
#include "keeper/process/process.h"
#include "sandbox/cgroup/cgroup.h"

#define PARKS_MAX 64u /* each is a process and a few descriptors */
#define IDLE_MS 60000u
#define WARM_MS 50u
#define LEAVE_MS 200u /* one that is not wanted any more is asked again whether it is done */

_Static_assert(COOP_LAUNCHER_DOORS_MAX > COOP_CG_COUNT, "a launcher enters each hierarchy");

struct coop_park {
	struct coop_link in_all;
	struct coop_agent *agent; /* no reference: NULL once that is removed */
	struct coop_launcher *launcher;
	uint64_t used_at;
};

struct coop_parks {
	coop_parks_retired on_retire;
	struct coop_link all; /* struct coop_park; the one used last is the last */
	unsigned count;
	bool off;                         /* a launcher could not enter its group */
	bool cold;                        /* that of the user's own agent has yet to be made */
	struct coop_launcher_class usual; /* its class */
	uv_timer_t timer;                 /* lets go of those that nobody uses */
};

static struct coop_parks *parks_of(const struct coop_keeper *keeper)
{
	return coop_groups_of(keeper)->parks;
}

/* Its launcher leaves, with the sandboxes that it has prepared. Only one that nobody waits for. */
static void retire(struct coop_keeper *keeper, struct coop_park *park)
{
	parks_of(keeper)->on_retire(keeper, park->launcher);
	coop_launcher_retire(park->launcher);
	coop_list_remove(&park->in_all);
	parks_of(keeper)->count--;
	free(park);
}

/* The user's own comes back in no time, as does one that was used a moment ago. */
static bool wanted(const struct coop_keeper *keeper, const struct coop_park *park, uint64_t now)
{
	return park->agent && (coop_agent_is_main(park->agent) || now - park->used_at < IDLE_MS);
}

static struct coop_park *make(struct coop_agent *agent, struct coop_launcher_class class);

/* It is the user's own agent's, who does not wait. */
static struct coop_park *make_ahead(struct coop_keeper *keeper, struct coop_launcher_class class)
{
	struct coop_park *park = make(coop_agents_main(keeper), class);

	if (park)
		coop_launcher_warm(park->launcher);
	return park;
}

static void warm(struct coop_keeper *keeper)
{
	parks_of(keeper)->cold = false;
	if (coop_groups_shared(coop_agents_main(keeper)))
		(void)make_ahead(keeper, parks_of(keeper)->usual);
}

static void on_timer(uv_timer_t *timer)
{
	struct coop_keeper *keeper = timer->data;
	uint64_t now = uv_now(coop_loop_of(keeper)), next = 0;

	if (parks_of(keeper)->cold)
		warm(keeper);
	COOP_LIST_EACH(&parks_of(keeper)->all, link)
	{
		struct coop_park *park = COOP_LIST_ITEM(link, struct coop_park, in_all);
		if (park->agent && coop_agent_is_main(park->agent))
			continue;
		if (wanted(keeper, park, now))
			next = next ? next : IDLE_MS;
		else if (coop_launcher_unused(park->launcher))
			retire(keeper, park);
		else
			next = LEAVE_MS;
	}
	if (next)
		(void)uv_timer_start(timer, on_timer, next, 0);
}

static void look_in(struct coop_keeper *keeper, uint64_t ms)
{
	uv_timer_t *timer = &parks_of(keeper)->timer;

	if (!uv_is_active((uv_handle_t *)timer) || uv_timer_get_due_in(timer) > ms)
		(void)uv_timer_start(timer, on_timer, ms, 0);
}

struct coop_parks *coop_parks_new(struct coop_keeper *keeper, coop_parks_retired on_retire)
{
	struct coop_parks *parks = coop_mem_zalloc(sizeof *parks);

	if (!parks)
		return NULL;
	parks->on_retire = on_retire;
	coop_list_init(&parks->all);
	(void)uv_timer_init(coop_loop_of(keeper), &parks->timer);
	parks->timer.data = keeper;
	return parks;
}

static bool same_kind(const struct coop_launcher_class *a, const struct coop_launcher_class *b)
{
	return a->kind == b->kind && a->other_ids == b->other_ids && a->uid == b->uid &&
	       a->gid == b->gid;
}

static struct coop_park *find(const struct coop_agent *agent,
			      const struct coop_launcher_class *class)
{
	COOP_LIST_EACH(&parks_of(agent->keeper)->all, link)
	{
		struct coop_park *park = COOP_LIST_ITEM(link, struct coop_park, in_all);
		if (park->agent == agent && same_kind(&park->launcher->class, class))
			return park;
	}
	return NULL;
}

/* The one that was not used for longest gives way. */
static bool make_room(struct coop_keeper *keeper)
{
	if (parks_of(keeper)->count < PARKS_MAX)
		return true;
	COOP_LIST_EACH(&parks_of(keeper)->all, link)
	{
		struct coop_park *park = COOP_LIST_ITEM(link, struct coop_park, in_all);
		if (!coop_launcher_unused(park->launcher))
			continue;
		retire(keeper, park);
		return true;
	}
	return false;
}

static struct coop_park *make(struct coop_agent *agent, struct coop_launcher_class class)
{
	struct coop_keeper *keeper = agent->keeper;
	struct coop_park *park = NULL;
	struct coop_launcher *launcher = NULL;

	if (!coop_groups_rest(agent) || !make_room(keeper))
		return NULL;
	class.cell = ++coop_groups_of(keeper)->last_cell;
	class.stays = true;
	park = coop_mem_zalloc(sizeof *park);
	launcher = park ? coop_launcher_get(keeper, &class) : NULL;
	int count = launcher ? coop_cgroup_park(coop_groups_known(keeper), &agent->rest,
						launcher->doors)
			     : -1;
	if (count <= 0 || coop_launcher_raise_fds(launcher->doors, count) < 0) {
		if (launcher)
			coop_launcher_retire(launcher);
		free(park);
		return NULL;
	}
	launcher->door_count = count;
	park->launcher = launcher;
	park->agent = agent;
	coop_list_add(&parks_of(keeper)->all, &park->in_all);
	parks_of(keeper)->count++;
	look_in(keeper, IDLE_MS);
	return park;
}

/* One that could not enter its group starts nothing, for whatever reason: better without the share
 * than not at all. */
static bool refused(struct coop_keeper *keeper, struct coop_park *park)
{
	const struct coop_launcher *launcher = park->launcher;

	if ((!launcher->refusal.error && !launcher->useless) || launcher->pid || launcher->waits)
		return false;
	coop_log(COOP_LOG_WARN, "agents' shares are not held: no launcher in their groups error=%s",
		 coop_err_errno_name(launcher->refusal.error));
	parks_of(keeper)->off = true;
	if (coop_launcher_unused(launcher))
		retire(keeper, park);
	return true;
}

/* The user's own agent starts without while its park is being made; the commands of others wait
 * in its queue. */
void coop_parks_enter(struct coop_agent *agent, struct coop_confine *confine)
{
	struct coop_keeper *keeper = agent->keeper;
	bool own = coop_agent_is_main(agent);

	if (parks_of(keeper)->off || confine->policy.profile == COOP_PROFILE_FULL ||
	    (own && parks_of(keeper)->cold) || !coop_groups_shared(agent))
		return;
	struct coop_park *park = find(agent, &confine->launcher);
	if (!park)
		park = own ? make_ahead(keeper, confine->launcher) : make(agent, confine->launcher);
	if (!park || refused(keeper, park))
		return;
	if (own && !park->launcher->ready) {
		coop_launcher_warm(park->launcher); /* should the last have died */
		return;
	}
	park->used_at = uv_now(coop_loop_of(keeper));
	coop_list_remove(&park->in_all);
	coop_list_add(&parks_of(keeper)->all, &park->in_all);
	confine->launcher.cell = park->launcher->class.cell;
	confine->parked = confine->shared = true;
}

void coop_parks_warm(struct coop_keeper *keeper, const struct coop_launcher_class *class)
{
	parks_of(keeper)->cold = true;
	parks_of(keeper)->usual = *class;
	look_in(keeper, WARM_MS);
}

/* One that still owes answers leaves when it has given them. */
void coop_parks_drop(struct coop_agent *agent)
{
	struct coop_keeper *keeper = agent->keeper;

	COOP_LIST_EACH(&parks_of(keeper)->all, link)
	{
		struct coop_park *park = COOP_LIST_ITEM(link, struct coop_park, in_all);
		if (park->agent != agent)
			continue;
		park->agent = NULL;
		if (coop_launcher_unused(park->launcher))
			retire(keeper, park);
		else
			look_in(keeper, LEAVE_MS);
	}
}

void coop_parks_free(struct coop_keeper *keeper)
{
	(void)uv_timer_stop(&parks_of(keeper)->timer);
	while (parks_of(keeper)->all.next && !coop_list_empty(&parks_of(keeper)->all)) {
		struct coop_park *park =
			COOP_LIST_ITEM(parks_of(keeper)->all.next, struct coop_park, in_all);
		coop_list_remove(&park->in_all);
		free(park);
	}
}

void coop_parks_write(const struct coop_process *process, struct coop_jsonw *w, const char *name)
{
	const struct coop_keeper *keeper = process->keeper;
	const struct coop_confine *confine = process->confine;
	struct coop_sandbox_limits limits;

	/* What others have set for it is in its own limits. */
	coop_groups_shares(process->agent, &limits);
	coop_jsonw_begin(w, name);
	const struct {
		const char *name;
		int64_t limit;
		enum coop_controller controller;
	} rows[] = {{"memory_bytes", limits.memory_bytes, COOP_CG_MEMORY},
		    {"max_pids", limits.max_pids, COOP_CG_PIDS}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		bool held =
			confine->shared && coop_groups_of(keeper)->host.version[rows[i].controller];
		if (!rows[i].limit) {
			coop_jsonw_null(w, rows[i].name);
			continue;
		}
		coop_jsonw_begin(w, rows[i].name);
		coop_jsonw_int(w, "limit", rows[i].limit);
		coop_jsonw_string(w, "state", held ? "enforced" : "none");
		coop_jsonw_string(
			w, "mechanism",
			held ? coop_cgroup_mechanism(coop_groups_known(keeper), rows[i].controller)
			     : NULL);
		coop_jsonw_end(w);
	}
	coop_jsonw_end(w);
}
