#include "sandbox/cgroup/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "sandbox/cgroup/cgroup_file.h"
#include "sandbox/cgroup/cgroup_folder.h"
#include "sandbox/cgroup/cgroup_limit.h"
#include "sandbox/cgroup/cgroup_unified.h"
#include "sandbox/policy/protection.h"

#define LIMITING \
	(COOP_CG_BIT(COOP_CG_MEMORY) | COOP_CG_BIT(COOP_CG_CPU) | COOP_CG_BIT(COOP_CG_PIDS))

const char *coop_cgroup_mechanism(const struct coop_cgroups *groups,
				  enum coop_controller controller)
{
	static const char *const names[] = {"", "cgroup v1", "cgroup v2"};

	return names[groups->version[controller]];
}

int coop_cgroup_folder(const struct coop_cgroups *groups, const struct coop_cgroup *group,
		       enum coop_controller controller, char *ret)
{
	if (!group->path || !(group->used & COOP_CG_BIT(controller)))
		return -ENOTSUP;
	return coop_cgfile_join(groups->base[controller], group->path, ret, COOP_CG_PATH_MAX);
}

/* In the tree of version 2. */
int coop_cgroup_unified(const struct coop_cgroups *groups, const struct coop_cgroup *group,
			char *ret)
{
	if (!group->path || group->fd < 0)
		return -ENOTSUP;
	return coop_cgfile_join(groups->unified, group->path, ret, COOP_CG_PATH_MAX);
}

int coop_cgroup_where(const struct coop_cgroups *groups, const struct coop_cgroup *group, char *ret)
{
	int r = group->fd >= 0 ? coop_cgroup_unified(groups, group, ret) : -ENOTSUP;

	for (int i = 0; r < 0 && i < COOP_CG_COUNT; i++)
		r = coop_cgroup_folder(groups, group, (enum coop_controller)i, ret);
	return r;
}

static bool is_path(const char *path)
{
	size_t size = strlen(path);

	if (size == 0 || size > 1024 || strchr(path, '\n'))
		return false;
	for (const char *part = path; part;) {
		size_t length = strcspn(part, "/");
		if (length == 0 || length > 200 || part[0] == '.')
			return false;
		part = part[length] ? part + length + 1 : NULL;
	}
	return true;
}

/* Bits of controllers in which a group above the path, below the keeper's folder, is limited. */
static uint32_t limited_above(const struct coop_cgroups *groups, const char *path)
{
	uint32_t found = 0;

	for (unsigned i = 0; i < COOP_CG_FREEZER; i++) {
		char folder[COOP_CG_PATH_MAX];
		if (groups->version[i] == 0 ||
		    coop_cgfile_join(groups->base[i], path, folder, sizeof folder) < 0)
			continue;
		size_t base = strlen(groups->base[i]);
		for (char *slash; (slash = strrchr(folder, '/')) > folder + base;) {
			*slash = 0;
			if (coop_cglimit_is_set(groups->version[i], i, folder))
				found |= COOP_CG_BIT(i);
		}
	}
	return found;
}

/* A group that is to have some below it: in version 2 it hands on its controllers, and does no
 * longer die as one. */
static int become_parent(const char *folder, int version)
{
	uint32_t new = 0;
	int error = 0;

	if (version == 1)
		return 0;
	(void)coop_cgunified_hand_on(folder, LIMITING, &new, &error);
	(void)coop_cgfile_write(folder, "memory.oom.group", "0");
	return error;
}

/* The folder and those above it, from the top. One with folders in it, seen by its links, is a
 * parent already. */
static int make_folders(const char *base, const char *path, int version)
{
	char folder[COOP_CG_PATH_MAX];
	struct stat st;
	int r = coop_cgfile_join(base, path, folder, sizeof folder);

	if (r < 0)
		return r;
	for (char *slash = folder + strlen(base); r == 0 && (slash = strchr(slash + 1, '/'));) {
		*slash = 0;
		if (stat(folder, &st) < 0 || st.st_nlink <= 2) {
			r = coop_cgfile_make(folder);
			if (r == 0)
				r = become_parent(folder, version);
		}
		*slash = '/';
	}
	return r < 0 ? r : coop_cgfile_make(folder);
}

/* The folder in the tree of version 2, with an fd on it. */
static int make_unified(const struct coop_cgroups *groups, struct coop_cgroup *group)
{
	char folder[COOP_CG_PATH_MAX], procs[COOP_CG_PATH_MAX];

	if (group->fd >= 0)
		return 0;
	int r = make_folders(groups->unified, group->path, 2);
	if (r == 0)
		r = coop_cgfile_join(groups->unified, group->path, folder, sizeof folder);
	if (r == 0)
		r = coop_cgfile_join(folder, "cgroup.procs", procs, sizeof procs);
	if (r < 0)
		return r;
	/* One process of a tree that was killed for memory is half a tree. */
	(void)coop_cgfile_write(folder, "memory.oom.group", "1");
	if (groups->delegated && chown(procs, groups->uid, groups->gid) < 0)
		return -errno;
	group->fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return group->fd < 0 ? -errno : 0;
}

/* Makes the folders for `wanted` that are not there yet. On failure *ret_which tells for what. */
static int use(const struct coop_cgroups *groups, struct coop_cgroup *group, uint32_t wanted,
	       enum coop_controller *ret_which)
{
	for (unsigned i = 0; i < COOP_CG_COUNT; i++) {
		if (!(wanted & COOP_CG_BIT(i)) || (group->used & COOP_CG_BIT(i)))
			continue;
		int r = groups->version[i] == 2 ? make_unified(groups, group)
						: make_folders(groups->base[i], group->path, 1);
		/* Also after a failure: what was made of it is removed with the rest. */
		group->used |= COOP_CG_BIT(i);
		*ret_which = i;
		if (r < 0)
			return r;
	}
	return 0;
}

static int refuse(struct coop_err *err, enum coop_controller controller, int status,
		  const char *reason)
{
	static const enum coop_protection limits[COOP_CG_COUNT] = {
		[COOP_CG_MEMORY] = COOP_PROTECT_MEMORY,
		[COOP_CG_CPU] = COOP_PROTECT_CPU,
		[COOP_CG_PIDS] = COOP_PROTECT_PIDS,
	};
	const char *name = controller == COOP_CG_FREEZER ? "freezer"
							 : coop_protection_name(limits[controller]);
	int r = coop_err_set(err, COOP_SANDBOX_UNAVAILABLE,
			     "sandbox: %s cannot be enforced: %s (see coop doctor; --tolerate %s "
			     "runs without)",
			     name, reason, name);

	coop_err_detail(err, "protection", name);
	coop_err_detail(err, "reason", reason);
	coop_err_detail(err, "cause", "host");
	if (status < 0)
		coop_err_detail(err, "errno", coop_err_errno_name(-status));
	return r;
}

static int write_limits(const struct coop_cgroups *groups, const struct coop_cgroup *group,
			const struct coop_sandbox_limits *limits, uint32_t which,
			enum coop_controller *ret_which)
{
	for (unsigned i = 0; i < COOP_CG_FREEZER; i++) {
		char folder[COOP_CG_PATH_MAX];
		if (!(which & COOP_CG_BIT(i)))
			continue;
		int r = coop_cgroup_folder(groups, group, i, folder);
		if (r == 0)
			r = coop_cglimit_write(groups->version[i], i, folder,
					       coop_cglimit_of(limits, i));
		*ret_which = i;
		if (r < 0)
			return r;
	}
	return 0;
}

static uint32_t limited_by(const struct coop_sandbox_limits *limits)
{
	uint32_t found = 0;

	for (unsigned i = 0; i < COOP_CG_FREEZER; i++) {
		if (coop_cglimit_of(limits, i) > 0)
			found |= COOP_CG_BIT(i);
	}
	return found;
}

int coop_cgroup_make(const struct coop_cgroups *groups, const char *path,
		     const struct coop_sandbox_limits *limits, bool freezable,
		     struct coop_cgroup *ret, struct coop_err *err)
{
	struct coop_cgroup group = {.fd = -1};
	uint32_t limited = limited_by(limits);
	enum coop_controller which = COOP_CG_MEMORY;

	for (unsigned i = 0; i < COOP_CG_FREEZER; i++) {
		if ((limited & COOP_CG_BIT(i)) && groups->version[i] == 0)
			return refuse(err, i, 0, groups->why[i]);
	}
	if (!is_path(path))
		return coop_err_set(err, COOP_INTERNAL, "not a control group's name");
	group.path = coop_mem_strdup(path);
	if (!group.path)
		return coop_err_no_memory(err);
	uint32_t wanted = limited | limited_above(groups, path);
	if (freezable && groups->version[COOP_CG_FREEZER] != 0)
		wanted |= COOP_CG_BIT(COOP_CG_FREEZER);
	int r = use(groups, &group, wanted, &which);
	const char *step = "making the group";
	if (r == 0) {
		r = write_limits(groups, &group, limits, limited, &which);
		step = "setting the limit";
	}
	if (r < 0) {
		char reason[160];
		(void)snprintf(reason, sizeof reason, "%s: %s", step, coop_err_errno_name(-r));
		(void)coop_cgroup_remove(groups, &group);
		coop_cgroup_clear(&group);
		return refuse(err, which, r, reason);
	}
	*ret = group;
	return 0;
}

int coop_cgroup_limit(const struct coop_cgroups *groups, struct coop_cgroup *group,
		      const struct coop_sandbox_limits *limits)
{
	uint32_t limited = limited_by(limits);
	enum coop_controller which;

	for (unsigned i = 0; i < COOP_CG_FREEZER; i++) {
		if ((limited & COOP_CG_BIT(i)) && groups->version[i] == 0)
			return -ENOTSUP;
	}
	int r = use(groups, group, limited, &which);
	/* Those that are used and not named any more are taken away. */
	return r < 0 ? r : write_limits(groups, group, limits, group->used, &which);
}

static bool is_limited(const struct coop_cgroups *groups, const char *folder, int version)
{
	for (unsigned i = 0; i < COOP_CG_FREEZER; i++) {
		if (groups->version[i] == version && coop_cglimit_is_set(version, i, folder))
			return true;
	}
	return false;
}

/* Groups above that were made along the way and are of no more use. A folder without folders has
 * two links. */
static void prune(const struct coop_cgroups *groups, char *folder, size_t base, int version)
{
	struct stat st;

	for (char *slash; (slash = strrchr(folder, '/')) > folder + base;) {
		*slash = 0;
		if (stat(folder, &st) < 0 || st.st_nlink > 2 ||
		    is_limited(groups, folder, version) || rmdir(folder) < 0)
			return;
	}
}

static int remove_folder(const struct coop_cgroups *groups, const char *base, const char *path,
			 int version)
{
	char folder[COOP_CG_PATH_MAX];
	int r = coop_cgfile_join(base, path, folder, sizeof folder);

	if (r < 0)
		return r;
	if (rmdir(folder) < 0 && errno != ENOENT)
		return -errno;
	prune(groups, folder, strlen(base), version);
	return 0;
}

int coop_cgroup_remove(const struct coop_cgroups *groups, struct coop_cgroup *group)
{
	int r = 0;

	for (unsigned i = 0; group->path && r == 0 && i < COOP_CG_COUNT; i++) {
		if ((group->used & COOP_CG_BIT(i)) && groups->version[i] == 1)
			r = remove_folder(groups, groups->base[i], group->path, 1);
	}
	if (r == 0 && group->path && groups->unified)
		r = remove_folder(groups, groups->unified, group->path, 2);
	if (r == 0)
		coop_cgroup_clear(group);
	return r;
}

void coop_cgroup_clear(struct coop_cgroup *group)
{
	if (group->fd >= 0)
		(void)close(group->fd);
	free(group->path);
	*group = (struct coop_cgroup){.fd = -1};
}
