/* Where in the tree of version 2 the keeper's groups can be, so that controllers reach them. For
 * the cgroup modules only. */
#ifndef COOP_SANDBOX_CGROUP_UNIFIED_H
#define COOP_SANDBOX_CGROUP_UNIFIED_H

#include <stdbool.h>
#include <stdint.h>

#include "sandbox/cgroup/cgroup_file.h"
#include "sandbox/cgroup/cgroup_find.h"

/* The keeper's own processes, where they had to make room. */
#define COOP_CGUNIFIED_KEEPER "keeper"

struct coop_cgunified {
	char base[COOP_CG_PATH_MAX]; /* made, and empty but for the keeper's own group */
	uint32_t have;               /* bits of controllers that groups below it have */
	uint32_t handed_on;          /* those that were turned on for that in the group above */
	bool moved;
	int error; /* why it is not more, -errno */
	char why[128];
};

/* Finds the place for folder `name` and makes it, without what an earlier one held. 0, or -errno
 * where none can be made at all. */
int coop_cgunified_place(const struct coop_cgroup_place *own, const char *name,
			 struct coop_cgunified *ret);

/* Turns on for the groups below `folder` what is to be had there of `wanted`. What they have
 * then. */
uint32_t coop_cgunified_hand_on(const char *folder, uint32_t wanted, uint32_t *ret_new,
				int *ret_error);

/* Removes it all; the keeper goes back to where it was. */
void coop_cgunified_leave(const char *base, uint32_t handed_on, bool moved,
			  enum coop_cgfile_patience patience);

#endif
