#include "sandbox/cgroup/cgroup_unified.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "interface/err.h"
#include "sandbox/cgroup/cgroup_file.h"
#include "sandbox/cgroup/cgroup_limit.h"

#define LIMITING \
	(COOP_CG_BIT(COOP_CG_MEMORY) | COOP_CG_BIT(COOP_CG_CPU) | COOP_CG_BIT(COOP_CG_PIDS))

/* The controllers that a file of their names lists. */
static uint32_t read_names(const char *folder, const char *file)
{
	char text[512];
	ssize_t size = coop_cgfile_read(folder, file, text, sizeof text);
	uint32_t found = 0;

	for (unsigned i = 0; size > 0 && i < COOP_CG_FREEZER; i++) {
		if (coop_cgroup_listed(text, (size_t)size, " \n", coop_controller_name(i)))
			found |= COOP_CG_BIT(i);
	}
	return found;
}

/* One at a time: of several in one write none is turned on if one of them cannot be. */
static int turn(const char *folder, enum coop_controller controller, char sign)
{
	char text[32];

	(void)snprintf(text, sizeof text, "%c%s", sign, coop_controller_name(controller));
	return coop_cgfile_write(folder, "cgroup.subtree_control", text);
}

uint32_t coop_cgunified_hand_on(const char *folder, uint32_t wanted, uint32_t *ret_new,
				int *ret_error)
{
	uint32_t on = read_names(folder, "cgroup.subtree_control");
	uint32_t missing = wanted & read_names(folder, "cgroup.controllers") & ~on;

	for (unsigned i = 0; i < COOP_CG_FREEZER; i++) {
		if (!(missing & COOP_CG_BIT(i)))
			continue;
		int r = turn(folder, i, '+');
		if (r == 0)
			*ret_new |= COOP_CG_BIT(i);
		else
			*ret_error = r;
	}
	return read_names(folder, "cgroup.subtree_control") & wanted;
}

static void take_back(const char *folder, uint32_t handed_on)
{
	/* The kernel keeps on what a group below hands on itself: another keeper's are safe. */
	for (unsigned i = 0; i < COOP_CG_FREEZER; i++) {
		if (handed_on & COOP_CG_BIT(i))
			(void)turn(folder, i, '-');
	}
}

static int is_ours(pid_t pid, void *context)
{
	const struct stat *self = context;
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
	return pid > 0 && stat(path, &st) == 0 && st.st_dev == self->st_dev &&
			       st.st_ino == self->st_ino
		       ? 0
		       : -EBUSY;
}

static int move_one(pid_t pid, void *context)
{
	int r = coop_cgfile_write_number(context, "cgroup.procs", pid);

	return r == -ESRCH ? 0 : r;
}

/* The keeper, and a second process of its program that watches it, are all that is in `from`: they
 * go to `to`. */
static int move_ours(const char *from, const char *to)
{
	struct stat self;
	char target[COOP_CG_PATH_MAX];

	if (stat("/proc/self/exe", &self) < 0)
		return -errno;
	int r = coop_cgfile_procs(from, is_ours, &self);
	if (r == 0)
		r = coop_cgfile_make(to);
	if (r < 0)
		return r;
	(void)snprintf(target, sizeof target, "%s", to);
	r = coop_cgfile_procs(from, move_one, target);
	if (r < 0) {
		(void)snprintf(target, sizeof target, "%s", from);
		(void)coop_cgfile_procs(to, move_one, target);
		(void)rmdir(to);
	}
	return r;
}

static void parent_of(const char *path, char *ret)
{
	const char *slash = strrchr(path, '/');

	(void)snprintf(ret, COOP_CG_PATH_MAX, "%.*s", (int)(slash - path), path);
}

void coop_cgunified_leave(const char *base, uint32_t handed_on, bool moved,
			  enum coop_cgfile_patience patience)
{
	char parent[COOP_CG_PATH_MAX], keeper[COOP_CG_PATH_MAX];

	parent_of(base, parent);
	(void)coop_cgfile_remove_tree(base, moved ? COOP_CGUNIFIED_KEEPER : NULL, patience);
	if (moved && coop_cgfile_join(base, COOP_CGUNIFIED_KEEPER, keeper, sizeof keeper) == 0) {
		/* A group with processes takes no controllers, so both let go of theirs before the
		 * keeper comes back. */
		take_back(base, LIMITING);
		take_back(parent, LIMITING);
		(void)coop_cgfile_procs(keeper, move_one, parent);
		(void)rmdir(keeper);
		(void)rmdir(base);
	} else {
		take_back(parent, handed_on);
	}
}

static int one_is_enough(pid_t pid, void *context)
{
	return 1;
}

/* A group with processes hands on nothing that is of use: controllers of threads alone could be
 * turned on, but then no process could enter a group below. The root of the whole tree, the one
 * group without a type, may have both. */
static bool is_occupied(const char *folder)
{
	char text[32];

	return coop_cgfile_read(folder, "cgroup.type", text, sizeof text) > 0 &&
	       coop_cgfile_procs(folder, one_is_enough, NULL) != 0;
}

/* One candidate: groups below `parent`. */
static int try_place(const char *parent, const char *name, uint32_t wanted, bool may_move,
		     struct coop_cgunified *ret)
{
	char keeper[COOP_CG_PATH_MAX];
	uint32_t ignored = 0;

	ret->have = ret->handed_on = 0;
	ret->error = 0;
	int r = coop_cgfile_join(parent, name, ret->base, sizeof ret->base);
	if (r == 0)
		r = coop_cgfile_join(ret->base, COOP_CGUNIFIED_KEEPER, keeper, sizeof keeper);
	if (r < 0)
		return r;
	(void)coop_cgfile_remove_tree(ret->base, ret->moved ? COOP_CGUNIFIED_KEEPER : NULL,
				      COOP_CGFILE_AT_ONCE);
	r = coop_cgfile_make(ret->base);
	if (r < 0 || !wanted)
		return r;
	if (is_occupied(parent)) {
		if (!may_move || move_ours(parent, keeper) < 0) {
			ret->error = -EBUSY;
			return 0;
		}
		ret->moved = true;
	}
	uint32_t have = coop_cgunified_hand_on(parent, wanted, &ret->handed_on, &ret->error);
	ret->have = coop_cgunified_hand_on(ret->base, have, &ignored, &ret->error);
	return 0;
}

static void leave_place(struct coop_cgunified *place)
{
	coop_cgunified_leave(place->base, place->handed_on, place->moved, COOP_CGFILE_AT_ONCE);
	place->moved = false;
}

static bool is_limited(const char *folder)
{
	for (unsigned i = 0; i < COOP_CG_FREEZER; i++) {
		if (coop_cglimit_is_set(2, i, folder))
			return true;
	}
	return false;
}

/* A keeper that replaced itself finds itself where the earlier one had moved. */
static bool step_out(char *folder, size_t top, const char *name)
{
	char end[300];
	int n = snprintf(end, sizeof end, "/%s/" COOP_CGUNIFIED_KEEPER, name);
	size_t size = strlen(folder);

	if (n < 0 || size < top + (size_t)n || strcmp(folder + size - (size_t)n, end) != 0)
		return false;
	folder[size - (size_t)n] = 0;
	return true;
}

static void explain(struct coop_cgunified *found, const char *folder, uint32_t wanted)
{
	if (found->error == -EBUSY)
		(void)snprintf(found->why, sizeof found->why,
			       "%.60s holds processes and so hands on no controllers", folder);
	else if (found->error < 0)
		(void)snprintf(found->why, sizeof found->why, "%s turning it on below %.80s",
			       coop_err_errno_name(-found->error), folder);
	else
		(void)snprintf(found->why, sizeof found->why, "%s",
			       wanted ? "not handed on to the keeper's group"
				      : "version 2 has no such controller here");
}

int coop_cgunified_place(const struct coop_cgroup_place *own, const char *name,
			 struct coop_cgunified *ret)
{
	char folder[COOP_CG_PATH_MAX], top[COOP_CG_PATH_MAX];
	char best[COOP_CG_PATH_MAX] = "";
	int best_count = -1, first_error = 0;

	*ret = (struct coop_cgunified){0};
	if ((size_t)snprintf(folder, sizeof folder, "%s", own->folder) >= sizeof folder)
		return -ENAMETOOLONG;
	ret->moved = step_out(folder, own->top, name);
	(void)snprintf(top, sizeof top, "%.*s", (int)own->top, own->folder);
	uint32_t wanted = read_names(top, "cgroup.controllers") & LIMITING;
	for (bool first = true;; first = false) {
		int r = try_place(folder, name, wanted, first, ret);
		if (r == 0 && ret->have == wanted)
			break;
		if (r == 0 && __builtin_popcount(ret->have) > best_count) {
			best_count = __builtin_popcount(ret->have);
			memcpy(best, folder, sizeof best);
		}
		first_error = first && r < 0 ? r : first_error;
		if (r == 0)
			leave_place(ret);
		/* A limit that is set on the way holds for the keeper, and would not for what it
		 * starts beside it. */
		if (strlen(folder) > own->top && !is_limited(folder)) {
			*strrchr(folder, '/') = 0;
			continue;
		}
		if (best_count < 0)
			return first_error ? first_error : r;
		r = try_place(best, name, wanted, !strcmp(best, own->folder), ret);
		if (r < 0)
			return r;
		break;
	}
	parent_of(ret->base, folder);
	explain(ret, folder, wanted);
	return 0;
}
