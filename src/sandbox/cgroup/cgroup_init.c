/* What control groups this host lets the keeper have, found out by making some. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "interface/err.h"
#include "sandbox/cgroup/cgroup.h"
#include "sandbox/cgroup/cgroup_file.h"
#include "sandbox/cgroup/cgroup_find.h"
#include "sandbox/cgroup/cgroup_folder.h"
#include "sandbox/cgroup/cgroup_limit.h"
#include "sandbox/cgroup/cgroup_unified.h"

/* Limits that anybody can live with, for a group that nobody lives in. */
static const struct coop_sandbox_limits trial_limits = {
	.memory_bytes = 64 << 20,
	.cpu_quota_millis = 500,
	.max_pids = 64,
};

#define SWEEP_DEPTH 8
#define SWEEP_FOLDERS 4096

struct sweep {
	const char *name; /* "coop-<keeper>" */
	unsigned depth, left;
};

static int remove_empty(const char *path, void *context)
{
	(void)coop_cgfile_folders(path, remove_empty, NULL);
	(void)rmdir(path);
	return 0;
}

static int sweep_one(const char *path, void *context)
{
	struct sweep *sweep = context;

	if (sweep->left == 0)
		return 1;
	sweep->left--;
	if (!strcmp(strrchr(path, '/') + 1, sweep->name))
		return remove_empty(path, NULL);
	if (sweep->depth == 0)
		return 0;
	sweep->depth--;
	(void)coop_cgfile_folders(path, sweep_one, sweep);
	sweep->depth++;
	return 0;
}

/* An earlier keeper of the name may have been started from another group and killed there: its
 * folders are nobody's. Those with somebody in them are left alone. */
static void sweep(const struct coop_cgroup_place *place, const char *name)
{
	char top[COOP_CG_PATH_MAX];
	struct sweep context = {.name = name, .depth = SWEEP_DEPTH, .left = SWEEP_FOLDERS};

	(void)snprintf(top, sizeof top, "%.*s", (int)place->top, place->folder);
	(void)coop_cgfile_folders(top, sweep_one, &context);
}

__attribute__((format(printf, 4, 5))) static void refuse(struct coop_cgroups *groups,
							 enum coop_controller controller, int error,
							 const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(groups->why[controller], sizeof groups->why[controller], format, arguments);
	va_end(arguments);
	if (!groups->error)
		groups->error = -error;
}

/* Whether the file system that is seen there is the one that mountinfo spoke of: it may be covered
 * by another. */
static bool shows(const char *folder, unsigned magic)
{
	struct statfs fs;

	return statfs(folder, &fs) == 0 && (unsigned)fs.f_type == magic;
}

/* Makes a group below `base` and sets a limit. */
static int try_limit(int version, enum coop_controller controller, const char *base)
{
	const char *file = version == 2 ? "cgroup.freeze" : "freezer.state";
	char path[COOP_CG_PATH_MAX], text[32];
	int r = coop_cgfile_join(base, "probe", path, sizeof path);

	if (r == 0)
		r = coop_cgfile_make(path);
	if (r < 0)
		return r;
	if (controller == COOP_CG_FREEZER) {
		ssize_t n = coop_cgfile_read(path, file, text, sizeof text);
		r = n < 0 ? (int)n : coop_cgfile_write(path, file, version == 2 ? "0" : "THAWED");
	} else {
		r = coop_cglimit_write(version, controller, path,
				       coop_cglimit_of(&trial_limits, controller));
	}
	if (rmdir(path) < 0 && r == 0)
		r = -errno;
	return r;
}

static void take(struct coop_cgroups *groups, enum coop_controller controller, int version,
		 const char *base)
{
	int r = try_limit(version, controller, base);

	if (r < 0) {
		refuse(groups, controller, r, "a group was made, but not limited: %s",
		       coop_err_errno_name(-r));
		return;
	}
	groups->base[controller] = coop_mem_strdup(base);
	if (!groups->base[controller]) {
		refuse(groups, controller, -ENOMEM, "no memory");
		return;
	}
	groups->version[controller] = version;
	groups->why[controller][0] = 0;
}

static void init_v1(struct coop_cgroups *groups, enum coop_controller controller,
		    const struct coop_cgroup_places *places, const char *name)
{
	const struct coop_cgroup_place *place = &places->v1[controller];
	char base[COOP_CG_PATH_MAX];

	if (!place->folder || !shows(place->folder, CGROUP_SUPER_MAGIC)) {
		if (!groups->why[controller][0])
			refuse(groups, controller, -ENOENT, "cgroup v2: %s; cgroup v1: %s",
			       places->unified.why, place->folder ? "covered" : place->why);
		return;
	}
	if (place->readonly) {
		refuse(groups, controller, -EROFS, "%.80s is read-only", place->folder);
		return;
	}
	int r = coop_cgfile_join(place->folder, name, base, sizeof base);
	if (r == 0) {
		(void)coop_cgfile_remove_tree(base, NULL, COOP_CGFILE_AT_ONCE);
		r = coop_cgfile_make(base);
	}
	if (r < 0) {
		refuse(groups, controller, r, "%s making a group below %.80s",
		       coop_err_errno_name(-r), place->folder);
		return;
	}
	take(groups, controller, 1, base);
	if (groups->version[controller] == 0)
		(void)rmdir(base);
}

static void init_v2(struct coop_cgroups *groups, const struct coop_cgroup_place *place,
		    const char *name)
{
	struct coop_cgunified found;

	if (!place->folder || place->readonly || !shows(place->folder, CGROUP2_SUPER_MAGIC)) {
		for (unsigned i = 0; place->folder && i < COOP_CG_COUNT; i++)
			refuse(groups, i, -EROFS, "%.80s is read-only or covered", place->folder);
		return;
	}
	int r = coop_cgunified_place(place, name, &found);
	groups->unified = r < 0 ? NULL : coop_mem_strdup(found.base);
	if (!groups->unified) {
		for (unsigned i = 0; i < COOP_CG_COUNT; i++)
			refuse(groups, i, r < 0 ? r : -ENOMEM, "%s making a group below %.80s",
			       coop_err_errno_name(r < 0 ? -r : ENOMEM), place->folder);
		return;
	}
	groups->handed_on = found.handed_on;
	groups->moved = found.moved;
	for (unsigned i = 0; i < COOP_CG_COUNT; i++) {
		if (i == COOP_CG_FREEZER || (found.have & COOP_CG_BIT(i)))
			take(groups, i, 2, groups->unified);
		else
			refuse(groups, i, found.error, "%s", found.why);
	}
}

static void refuse_all(struct coop_cgroups *groups, const char *why)
{
	*groups = (struct coop_cgroups){0};
	for (unsigned i = 0; i < COOP_CG_COUNT; i++)
		refuse(groups, i, -EINVAL, "%s", why);
}

void coop_cgroups_init_from(struct coop_cgroups *groups, const char *name, const char *mountinfo,
			    const char *own)
{
	struct coop_cgroup_places places;
	char folder[256];
	int n = snprintf(folder, sizeof folder, "coop-%s", name);

	if (n < 0 || (size_t)n >= sizeof folder || strchr(name, '/')) {
		refuse_all(groups, "the keeper's name cannot be a folder's");
		return;
	}
	if (coop_cgroup_find(mountinfo, own, &places) < 0) {
		refuse_all(groups, "no memory");
		return;
	}
	*groups = (struct coop_cgroups){0};
	init_v2(groups, &places.unified, folder);
	for (unsigned i = 0; i < COOP_CG_COUNT; i++) {
		if (groups->version[i] == 0)
			init_v1(groups, i, &places, folder);
	}
	coop_cgroup_places_clear(&places);
}

void coop_cgroups_init(struct coop_cgroups *groups, const char *name)
{
	COOP_AUTO_FREE char *mountinfo = coop_cgfile_read_all("/proc/self/mountinfo");
	COOP_AUTO_FREE char *own = coop_cgfile_read_all("/proc/self/cgroup");

	if (mountinfo && own)
		coop_cgroups_init_from(groups, name, mountinfo, own);
	else
		refuse_all(groups, "/proc does not tell about control groups");
}

/* Whether that group of ours is the folder, or below it. */
static bool is_inside(const char *own, const char *folder)
{
	size_t size = strlen(folder);

	return !strncmp(own, folder, size) && (own[size] == '/' || !own[size]);
}

/* In the own group and those above it whoever is left is killed, too. */
static void clean(const struct coop_cgroup_place *place, const char *name)
{
	char folder[COOP_CG_PATH_MAX], path[COOP_CG_PATH_MAX];

	if (!place->folder || place->readonly ||
	    (size_t)snprintf(folder, sizeof folder, "%s", place->folder) >= sizeof folder)
		return;
	for (;;) {
		if (coop_cgfile_join(folder, name, path, sizeof path) == 0 &&
		    access(path, F_OK) == 0)
			(void)coop_cgfile_remove_tree(
				path, is_inside(place->folder, path) ? COOP_CGUNIFIED_KEEPER : NULL,
				COOP_CGFILE_WAIT);
		if (strlen(folder) <= place->top)
			break;
		*strrchr(folder, '/') = 0;
	}
	sweep(place, name);
}

void coop_cgroups_clean(const char *name)
{
	COOP_AUTO_FREE char *mountinfo = coop_cgfile_read_all("/proc/self/mountinfo");
	COOP_AUTO_FREE char *own = coop_cgfile_read_all("/proc/self/cgroup");
	struct coop_cgroup_places places;
	char folder[256];
	int n = snprintf(folder, sizeof folder, "coop-%s", name);

	if (!mountinfo || !own || n < 0 || (size_t)n >= sizeof folder || strchr(name, '/') ||
	    coop_cgroup_find(mountinfo, own, &places) < 0)
		return;
	clean(&places.unified, folder);
	for (unsigned i = 0; i < COOP_CG_COUNT; i++)
		clean(&places.v1[i], folder);
	coop_cgroup_places_clear(&places);
}

void coop_cgroups_free(struct coop_cgroups *groups)
{
	if (groups->unified)
		coop_cgunified_leave(groups->unified, groups->handed_on, groups->moved,
				     COOP_CGFILE_WAIT);
	for (unsigned i = 0; i < COOP_CG_COUNT; i++) {
		if (groups->version[i] == 1)
			(void)coop_cgfile_remove_tree(groups->base[i], NULL, COOP_CGFILE_WAIT);
		free(groups->base[i]);
	}
	free(groups->unified);
	*groups = (struct coop_cgroups){0};
}

int coop_cgroups_launcher(const struct coop_cgroups *groups)
{
	char path[COOP_CG_PATH_MAX], procs[COOP_CG_PATH_MAX];

	if (!groups->unified)
		return -ENOTSUP;
	int r = coop_cgfile_join(groups->unified, "launcher", path, sizeof path);
	if (r == 0)
		r = coop_cgfile_make(path);
	if (r == 0)
		r = coop_cgfile_join(path, "cgroup.procs", procs, sizeof procs);
	if (r < 0)
		return r;
	int fd = open(procs, O_WRONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int coop_cgroups_delegate(struct coop_cgroups *groups, uid_t uid, gid_t gid)
{
	char path[COOP_CG_PATH_MAX];

	groups->delegated = true;
	groups->uid = uid;
	groups->gid = gid;
	if (!groups->unified)
		return 0;
	int r = coop_cgfile_join(groups->unified, "cgroup.procs", path, sizeof path);
	if (r < 0)
		return r;
	return chown(path, uid, gid) < 0 ? -errno : 0;
}
