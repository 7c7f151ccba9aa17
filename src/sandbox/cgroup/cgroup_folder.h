/* What the cgroup modules share among themselves: where a group's folders are. */
#ifndef COOP_SANDBOX_CGROUP_FOLDER_H
#define COOP_SANDBOX_CGROUP_FOLDER_H

#include "sandbox/cgroup/cgroup.h"

/* coop_cgroups_init on a host of which /proc/self/mountinfo and /proc/self/cgroup say this. */
void coop_cgroups_init_from(struct coop_cgroups *groups, const char *name, const char *mountinfo,
			    const char *own);

/* Both write a path of up to COOP_CG_PATH_MAX bytes. 0, or -ENOTSUP if the group has no such
 * folder. */
int coop_cgroup_folder(const struct coop_cgroups *groups, const struct coop_cgroup *group,
		       enum coop_controller controller, char *ret);
/* In the tree of version 2. */
int coop_cgroup_unified(const struct coop_cgroups *groups, const struct coop_cgroup *group,
			char *ret);

#endif
