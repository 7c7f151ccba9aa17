/* Where the hierarchies of control groups are mounted, and which part of them is this process's
 * own. Text in, places out: no file is touched. */
#ifndef COOP_SANDBOX_CGROUP_FIND_H
#define COOP_SANDBOX_CGROUP_FIND_H

#include <stdbool.h>
#include <stddef.h>

#include "sandbox/cgroup/controller.h"

struct coop_cgroup_place {
	char *folder; /* of the own group; NULL: there is none, see why */
	size_t top;   /* so many bytes of it are the mount point: what is above cannot be reached */
	bool readonly;
	char why[128];
};

struct coop_cgroup_places {
	struct coop_cgroup_place unified;
	struct coop_cgroup_place v1[COOP_CG_COUNT];
};

/* `mountinfo` and `own` are texts of /proc/self/mountinfo and /proc/self/cgroup. 0, with every
 * place either found or explained (to be cleared), or -ENOMEM. Lines that make no sense are passed
 * over. */
int coop_cgroup_find(const char *mountinfo, const char *own, struct coop_cgroup_places *ret);
void coop_cgroup_places_clear(struct coop_cgroup_places *places);

/* "memory", as the kernel calls it. */
const char *coop_controller_name(enum coop_controller controller);

/* Whether `word` is one of the words of `list`, which are parted by any of `separators`. */
bool coop_cgroup_listed(const char *list, size_t size, const char *separators, const char *word);

#endif
