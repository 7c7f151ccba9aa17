/* Control groups of processes and of agents: limits of memory, CPU and processes that hold for
 * whole trees.
 *
 * A process with such a limit, or of an agent that has one together with all below it, has a group
 * of its own, in those of its agents. In version 2 it is cloned into it. In version 1 that cannot
 * be: a launcher that is in the group already clones it, and leaves. To move into a group takes the
 * kernel milliseconds, so such a launcher is kept ready once one was needed. */
#ifndef COOP_KEEPER_GROUPS_H
#define COOP_KEEPER_GROUPS_H

#include <stdbool.h>

#include <uv.h>

#include "base/list.h"
#include "interface/err.h"
#include "sandbox/cgroup/cgroup.h"
#include "sandbox/policy/shares.h"

struct coop_agent;
struct coop_confine;
struct coop_draft;
struct coop_keeper;
struct coop_parks;
struct coop_process;

struct coop_groups {
	bool known; /* looked for */
	struct coop_cgroups host;
	struct coop_link cells; /* that wait: cells.h */
	unsigned cell_count;
	uint64_t last_cell;
	struct coop_link left; /* groups that are to be removed when nobody is in them any more */
	uint64_t cells_until;  /* then cells that nobody asked for go */
	struct coop_machine machine; /* that agents have shares of */
	struct coop_parks *parks;    /* parks.h */
	uv_timer_t timer;
};

/* NULL without memory. */
struct coop_groups *coop_groups_new(struct coop_keeper *keeper);

/* What is known so far, without looking. */
const struct coop_cgroups *coop_groups_known(const struct coop_keeper *keeper);

/* Finds out what there is, the first time. */
const struct coop_cgroups *coop_groups_host(struct coop_keeper *keeper);

/* Says in the report which limits are held by groups, or why not. `agent` NULL: nobody's in
 * particular. */
void coop_groups_hold(struct coop_keeper *keeper, const struct coop_agent *agent,
		      struct coop_confine *confine);

/* Makes the group that the process needs, and names the launcher for it. 0, or the error filled. */
int coop_groups_place(struct coop_draft *draft, struct coop_confine *confine);

/* What all of an agent may use together because nobody says otherwise; zeroes: whatever there
 * is. */
void coop_groups_shares(const struct coop_agent *agent, struct coop_sandbox_limits *ret);

/* Whether groups hold some of that here. */
bool coop_groups_shared(const struct coop_agent *agent);

/* Makes the group of an agent's processes that have none of their own, with those above it, unless
 * it is there. Whether it is. */
bool coop_groups_rest(struct coop_agent *agent);

/* The program has ended: what the kernel counted in its group is noted. */
void coop_groups_count(struct coop_process *process, int wait_status);

/* Nobody is in it any more. */
void coop_groups_leave(struct coop_process *process);

/* An agent's limits have changed; it is removed. */
void coop_groups_agent_changed(struct coop_agent *agent);
void coop_groups_agent_removed(struct coop_agent *agent);

/* The operator has changed what agents may use. */
void coop_groups_conf_changed(struct coop_keeper *keeper);

/* Before the launchers in them go. */
void coop_groups_drop_cells(struct coop_keeper *keeper);
void coop_groups_free(struct coop_keeper *keeper);

#endif
