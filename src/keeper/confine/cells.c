#include "keeper/confine/cells.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "keeper/confine/confine.h"
#include "keeper/confine/groups.h"
#include "keeper/core/keeper.h"
#include "keeper/launch/launcher_start.h"

#define CELLS_MAX 4u
#define PATH_BYTES 1056

struct coop_cell {
	struct coop_link in_all;
	char *parent; /* relative path of what it lies in; "": nothing */
	struct coop_cgroup group;
	struct coop_launcher *launcher; /* NULL: it was sent away */
};

/* A cell that waits must be in every hierarchy that may be needed, so it has limits that nothing
 * reaches. */
static const struct coop_sandbox_limits unreachable = {
	.memory_bytes = INT64_C(1) << 60, .cpu_quota_millis = 4096000, .max_pids = 4000000};

static void free_cell(struct coop_keeper *keeper, struct coop_cell *cell)
{
	coop_list_remove(&cell->in_all);
	coop_groups_of(keeper)->cell_count--;
	coop_cgroup_clear(&cell->group);
	free(cell->parent);
	free(cell);
}

/* Its launcher leaves; the group can be removed when that has been reaped, so it is asked again
 * until then. */
static bool drop_cell(struct coop_keeper *keeper, struct coop_cell *cell)
{
	if (cell->launcher)
		coop_launcher_retire(cell->launcher);
	cell->launcher = NULL;
	if (coop_cgroup_remove(coop_groups_known(keeper), &cell->group) == -EBUSY)
		return false;
	free_cell(keeper, cell);
	return true;
}

static int open_doors(const struct coop_cgroups *host, const struct coop_cgroup *group,
		      struct coop_launcher *launcher)
{
	int count = coop_cgroup_doors(host, group, launcher->doors);

	if (count < 0)
		return count;
	int own = group->fd >= 0 ? coop_cgroups_launcher(host) : -1;
	if (own >= 0)
		launcher->doors[count++] = own;
	int r = coop_launcher_raise_fds(launcher->doors, count);
	launcher->door_count = r < 0 ? 0 : count;
	return r;
}

struct coop_launcher *coop_cells_park(struct coop_keeper *keeper, const struct coop_cgroup *group,
				      struct coop_launcher_class class)
{
	class.cell = ++coop_groups_of(keeper)->last_cell;
	struct coop_launcher *launcher = coop_launcher_get(keeper, &class);
	if (!launcher)
		return NULL;
	if (open_doors(coop_groups_known(keeper), group, launcher) < 0) {
		coop_launcher_retire(launcher);
		return NULL;
	}
	return launcher;
}

static bool same_kind(const struct coop_launcher_class *a, const struct coop_launcher_class *b)
{
	return a->kind == b->kind && a->other_ids == b->other_ids && a->uid == b->uid &&
	       a->gid == b->gid;
}

static struct coop_cell *waiting_cell(struct coop_keeper *keeper, const char *parent,
				      const struct coop_launcher_class *class)
{
	COOP_LIST_EACH(&coop_groups_of(keeper)->cells, link)
	{
		struct coop_cell *cell = COOP_LIST_ITEM(link, struct coop_cell, in_all);
		if (cell->launcher && !strcmp(cell->parent, parent) &&
		    same_kind(&cell->launcher->class, class))
			return cell;
	}
	return NULL;
}

void coop_cells_prepare(struct coop_keeper *keeper, const char *parent,
			const struct coop_launcher_class *class)
{
	struct coop_groups *groups = coop_groups_of(keeper);
	struct coop_cell *cell = coop_mem_zalloc(sizeof *cell);
	char path[PATH_BYTES];
	struct coop_err err;

	if (!cell || groups->cell_count >= CELLS_MAX || waiting_cell(keeper, parent, class)) {
		free(cell);
		return;
	}
	cell->group.fd = -1;
	cell->parent = coop_mem_strdup(parent);
	(void)snprintf(path, sizeof path, "%s%ss-%llu", parent, *parent ? "/" : "",
		       (unsigned long long)++groups->last_cell);
	int r = cell->parent ? coop_cgroup_make(&groups->host, path, &unreachable, false,
						&cell->group, &err)
			     : -ENOMEM;
	if (r == 0 && !(cell->launcher = coop_cells_park(keeper, &cell->group, *class))) {
		(void)coop_cgroup_remove(&groups->host, &cell->group);
		r = -ENOMEM;
	}
	if (r < 0) {
		free(cell->parent);
		free(cell);
		return;
	}
	coop_launcher_warm(cell->launcher);
	coop_list_add(&groups->cells, &cell->in_all);
	groups->cell_count++;
}

bool coop_cells_take(struct coop_keeper *keeper, const char *parent, struct coop_confine *confine,
		     const struct coop_sandbox_limits *limits)
{
	struct coop_cell *cell = waiting_cell(keeper, parent, &confine->launcher);

	if (!cell)
		return false;
	if (coop_cgroup_limit(coop_groups_known(keeper), &cell->group, limits) < 0)
		return false;
	confine->group = cell->group;
	cell->group = (struct coop_cgroup){.fd = -1};
	confine->launcher = cell->launcher->class;
	free_cell(keeper, cell);
	return true;
}

bool coop_cells_look(struct coop_keeper *keeper, bool idle, bool *ret_again)
{
	bool waiting = false;

	*ret_again = false;
	COOP_LIST_EACH(&coop_groups_of(keeper)->cells, link)
	{
		struct coop_cell *cell = COOP_LIST_ITEM(link, struct coop_cell, in_all);
		/* One whose launcher has been sent away only waits for its group to be empty. */
		if (idle || !cell->launcher)
			*ret_again = !drop_cell(keeper, cell) || *ret_again;
		else
			waiting = true;
	}
	return waiting;
}

void coop_cells_drop_below(struct coop_keeper *keeper, const char *path)
{
	size_t size = strlen(path);

	COOP_LIST_EACH(&coop_groups_of(keeper)->cells, link)
	{
		struct coop_cell *cell = COOP_LIST_ITEM(link, struct coop_cell, in_all);
		if (!strncmp(cell->parent, path, size) &&
		    (!cell->parent[size] || cell->parent[size] == '/'))
			(void)drop_cell(keeper, cell);
	}
}

void coop_cells_free(struct coop_keeper *keeper)
{
	struct coop_groups *groups = coop_groups_of(keeper);

	while (groups->cells.next && !coop_list_empty(&groups->cells))
		free_cell(keeper, COOP_LIST_ITEM(groups->cells.next, struct coop_cell, in_all));
}
