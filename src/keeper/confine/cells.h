/* Cells: groups of version 1 with a launcher in them. To move into a group takes the kernel
 * milliseconds, so one waits where one was needed. */
#ifndef COOP_KEEPER_CELLS_H
#define COOP_KEEPER_CELLS_H

#include <stdbool.h>

#include "keeper/launch/launcher.h"
#include "sandbox/cgroup/cgroup.h"

struct coop_confine;
struct coop_keeper;

/* A launcher of the class that is in the group, or will be as soon as it has started. NULL without
 * memory or descriptors. */
struct coop_launcher *coop_cells_park(struct coop_keeper *keeper, const struct coop_cgroup *group,
				      struct coop_launcher_class class);

/* Takes a waiting one for the process, with its limits set; `parent` is the path of the group that
 * it lies in. False: there is none. */
bool coop_cells_take(struct coop_keeper *keeper, const char *parent, struct coop_confine *confine,
		     const struct coop_sandbox_limits *limits);

/* Prepares one for the next time, unless one waits. What fails here is tried again when it is
 * needed. */
void coop_cells_prepare(struct coop_keeper *keeper, const char *parent,
			const struct coop_launcher_class *class);

/* Lets those go that wait for their group to be empty, and with `idle` all. Whether some wait for
 * work; *ret_again: a group is not empty. */
bool coop_cells_look(struct coop_keeper *keeper, bool idle, bool *ret_again);

/* All in that group, or below it. */
void coop_cells_drop_below(struct coop_keeper *keeper, const char *path);

/* All; their groups are the host's to remove. */
void coop_cells_free(struct coop_keeper *keeper);

#endif
