/* Control groups of whichever kind there are: version 2, version 1, both, none. In the parent.
 * Everything here is a handful of writes to small files; nobody is ever moved by it on the way of a
 * spawn. One thread at a time for all of one keeper's groups, but for coop_cgroup_freeze and
 * coop_cgroup_move, which may wait and touch nothing but the files of their group.
 *
 * Who is below whom counts: what a group uses is counted for all above it, and their limits hold
 * for it too. */
#ifndef COOP_SANDBOX_CGROUP_H
#define COOP_SANDBOX_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "interface/err.h"
#include "sandbox/cgroup/controller.h"
#include "sandbox/policy/policy.h"

/* What this host has, and where the keeper's own groups live: <mount>/<own group>/coop-<keeper> in
 * each hierarchy. In version 2 that may be another group than the keeper's own: one that holds
 * processes cannot hand controllers on. If only the keeper's own program is in it, that moves to
 * coop-<keeper>/keeper and goes back at the end; else the groups are made in the nearest group
 * above that can, unless a limit would be left that way. */
struct coop_cgroups {
	int version[COOP_CG_COUNT]; /* 0: not to be had (why[] says the reason), 1, 2 */
	/* folder of the keeper's groups for that controller; NULL: none */
	char *base[COOP_CG_COUNT];
	/* the folder in the version 2 tree, also where it has no controllers; NULL: none that
	 * may be written */
	char *unified;
	char why[COOP_CG_COUNT][128];
	int error; /* of the first thing that failed, for `doctor` */
	/* bits of controllers that this keeper turned on in the group above `unified` */
	uint32_t handed_on;
	bool moved; /* the keeper itself is in <unified>/keeper */
	bool delegated;
	uid_t uid; /* with delegated */
	gid_t gid;
};

/* Finds out by doing: makes the keeper's folders, turns controllers on for their children, tries
 * one limit each. `name` is the keeper's: unique on this host, containers included, and the same
 * each time, without slashes. Never waits for anybody. Never fails: what cannot be had is told in
 * why[]. */
void coop_cgroups_init(struct coop_cgroups *groups, const char *name);

/* Removes what an earlier keeper of that name left behind, which was killed: after killing what is
 * in it, and waiting some seconds for that; folders that it left empty in other groups, too. Before
 * the groups are made, and before anybody is served. */
void coop_cgroups_clean(const char *name);

/* Ends whatever is left in the keeper's groups and removes the folders. */
void coop_cgroups_free(struct coop_cgroups *groups);

/* Lets launchers of that uid clone into the groups of version 2, those that are made from now on:
 * the kernel wants them to be allowed to write cgroup.procs of the target and of the folder above
 * both, and to live below that (coop_cgroups_launcher). 0 or -errno. */
int coop_cgroups_delegate(struct coop_cgroups *groups, uid_t uid, gid_t gid);

/* Opens cgroup.procs of <unified>/launcher. A launcher enters by writing "0" to it when it starts,
 * before it drops what rights it has or afterwards: what counts is who opened it. The fd, or
 * -errno; -ENOTSUP: no version 2, nothing to enter. */
int coop_cgroups_launcher(const struct coop_cgroups *groups);

/* How many folders there are for groups, in all hierarchies; the launcher's and the keeper's own do
 * not count. For `info` and tests. */
uint32_t coop_cgroups_count(const struct coop_cgroups *groups);

/* A group, with a folder of the same relative path in every hierarchy that is used. */
struct coop_cgroup {
	char *path; /* relative: "a-main/a-tester/p-17"; NULL: none */
	int fd;     /* of the folder in version 2 for clone3, O_PATH|O_DIRECTORY; -1: none */
	/* bits of controllers in which it has a folder: its own limits, those of a group above,
	 * the freezer */
	uint32_t used;
};

/* Makes the group with its limits, and those above it that are missing, without limits. Only what
 * is limited, here or in a group above, is used; with `freezable` also the freezer if there is one,
 * which in version 2 means a folder to clone into and to kill. In version 2 a group that has groups
 * below it can hold no processes. 0, or sandbox_unavailable naming the limit's field and why. */
int coop_cgroup_make(const struct coop_cgroups *groups, const char *path,
		     const struct coop_sandbox_limits *limits, bool freezable,
		     struct coop_cgroup *ret, struct coop_err *err);

/* Changes the limits of one that exists; 0 takes one away. Folders are made where a limit is new
 * (version 1: processes that are in the group are not in that folder). 0 or -errno; -EBUSY: more
 * memory is in use than the new limit and cannot be taken back. */
int coop_cgroup_limit(const struct coop_cgroups *groups, struct coop_cgroup *group,
		      const struct coop_sandbox_limits *limits);

/* Opens cgroup.procs of each version 1 hierarchy that the group uses, for a launcher that enters by
 * writing "0". Count, or -errno. */
int coop_cgroup_doors(const struct coop_cgroups *groups, const struct coop_cgroup *group,
		      int ret_fds[COOP_CG_COUNT]);

/* The same, and that of version 2, for a launcher that stays in the group, so that all that it
 * starts is in it: a group of many trees, of which the kernel kills one process and not all for
 * want of memory. Count, or -errno. */
int coop_cgroup_park(const struct coop_cgroups *groups, const struct coop_cgroup *group,
		     int ret_fds[COOP_CG_COUNT + 1]);

/* Kills all in it, and below (cgroup.kill). What a freezer of version 1 holds is let go, so that it
 * can die. 0 or -errno; -ENOTSUP: nothing of version 2 here, kill by pid. */
int coop_cgroup_kill(const struct coop_cgroups *groups, const struct coop_cgroup *group);

/* Its folder: in the tree of version 2 if it has one there, else in the first hierarchy that it
 * uses. `ret` has COOP_CG_PATH_MAX bytes. 0, or -ENOTSUP for an empty one. */
int coop_cgroup_where(const struct coop_cgroups *groups, const struct coop_cgroup *group,
		      char *ret);

/* Removes the folders and clears the struct, also of an empty one; and groups above that are empty,
 * have no limits and were not made by coop_cgroup_make with some. -EBUSY: somebody is in it still,
 * or a group below; the struct stays, to be asked again or cleared. */
int coop_cgroup_remove(const struct coop_cgroups *groups, struct coop_cgroup *group);

/* Forgets it without touching the folders: they go with coop_cgroups_free. */
void coop_cgroup_clear(struct coop_cgroup *group);

struct coop_cgroup_facts {
	/* processes in it that the kernel killed for want of memory, by its own limit or one
	 * above */
	uint64_t oom_kills;
	/* bytes; the kernel before 5.19 tells only what is in use now in version 2 */
	uint64_t memory_peak;
	uint64_t memory_now;
	uint64_t pids_refused; /* forks that failed at the limit */
	uint64_t cpu_throttled_ns;
};
/* What the kernel counted; members that it does not tell are 0. */
void coop_cgroup_facts(const struct coop_cgroups *groups, const struct coop_cgroup *group,
		       struct coop_cgroup_facts *ret);

/* Stops every process in it, also those that are born or moved in later, until thawed. 0 or -errno;
 * -EBUSY: one of them cannot be stopped, none is. May take seconds: not on the loop. */
int coop_cgroup_freeze(const struct coop_cgroups *groups, const struct coop_cgroup *group,
		       bool freeze);

/* Moves a process into the group's freezer. Slow (milliseconds). 0 or -errno; -ESRCH: it is
 * gone. */
int coop_cgroup_move(const struct coop_cgroups *groups, const struct coop_cgroup *group, pid_t pid);

/* "cgroup v1", "cgroup v2", "" where it is not to be had. */
const char *coop_cgroup_mechanism(const struct coop_cgroups *groups,
				  enum coop_controller controller);

#endif
