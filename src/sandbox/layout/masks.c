#include "sandbox/layout/masks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io/paths.h"
#include "base/mem.h"
#include "sandbox/layout/layout_path.h"

/* Sets are not removed while a sandbox may use them. Where homes change so often that there are
 * more, sandboxes hide names themselves. */
#define SETS_MAX 64u

struct set {
	char *home, *names;
	size_t size;
	struct timespec changed;
	char path[COOP_PATH_SIZE];
};

struct coop_masks {
	char *folder;
	bool broken; /* this file system cannot hold them */
	size_t count;
	struct set sets[SETS_MAX];
};

struct coop_masks *coop_masks_new(const char *folder)
{
	struct coop_masks *masks = coop_mem_zalloc(sizeof *masks);

	if (masks && !(masks->folder = coop_mem_strdup(folder))) {
		free(masks);
		return NULL;
	}
	return masks;
}

static void clear(struct set *set)
{
	free(set->home);
	free(set->names);
	*set = (struct set){0};
}

void coop_masks_free(struct coop_masks *masks)
{
	for (size_t i = 0; masks && i < masks->count; i++)
		clear(&masks->sets[i]);
	if (masks)
		free(masks->folder);
	free(masks);
}

/* The folder `name` of the set, with the rights of the home's. An fd; -ENOTDIR: the home has
 * something else there; or -errno. */
static int enter(int at, int home, const char *name, int *ret_home)
{
	struct stat st = {.st_mode = S_IFDIR | 0700};
	COOP_AUTO_FD int below =
		home < 0 ? -1 : openat(home, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (below >= 0 && (fstat(below, &st) < 0 || !S_ISDIR(st.st_mode)))
		return -ENOTDIR;
	if (mkdirat(at, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	int fd = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* Not by mkdir, as that knows the umask. */
	if (fchmodat(at, name, st.st_mode & 0777, 0) < 0) {
		int r = -errno;
		(void)close(fd);
		return r;
	}
	*ret_home = COOP_TAKE_FD(below);
	return fd;
}

/* One name. 0 or -errno. */
static int put(int top, int home, const char *name)
{
	char component[NAME_MAX + 1];
	COOP_AUTO_FD int at = fcntl(top, F_DUPFD_CLOEXEC, 3);
	COOP_AUTO_FD int below = fcntl(home, F_DUPFD_CLOEXEC, 3);

	for (const char *slash; (slash = strchr(name, '/')); name = slash + 1) {
		size_t size = (size_t)(slash - name);
		int next_below = -1;
		if (!size || size >= sizeof component)
			return -EINVAL;
		memcpy(component, name, size);
		component[size] = 0;
		int next = enter(at, below, component, &next_below);
		(void)close(at);
		(void)close(below);
		at = next;
		below = next_below;
		/* In what is no folder there is nothing to be hidden. */
		if (next < 0)
			return next == -ENOTDIR ? 0 : next;
	}
	if (at < 0)
		return -EMFILE;
	return mknodat(at, name, S_IFCHR, makedev(0, 0)) < 0 && errno != EEXIST ? -errno : 0;
}

static int fill(const struct set *set)
{
	COOP_AUTO_FD int top = open(set->path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	COOP_AUTO_FD int home = open(set->home, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = top < 0 || home < 0 ? -errno : 0;

	for (const char *name = set->names; r == 0 && name < set->names + set->size;
	     name += strlen(name) + 1)
		r = put(top, home, name);
	return r;
}

static int make(struct coop_masks *masks, struct set *set)
{
	char name[24];

	(void)snprintf(name, sizeof name, "masks-%zu", masks->count);
	int r = coop_path_join(masks->folder, name, set->path);
	if (r == 0 && mkdir(set->path, 0755) < 0)
		r = -errno;
	if (r < 0)
		return r;
	struct stat st;
	r = fill(set);
	if (r == 0 && stat(set->path, &st) < 0)
		r = -errno;
	if (r < 0)
		coop_paths_remove_all(set->path);
	else
		set->changed = st.st_ctim;
	return r;
}

/* Whether nobody has tidied it away, or up. */
static bool is_whole(const struct set *set)
{
	struct stat st;

	return lstat(set->path, &st) == 0 && S_ISDIR(st.st_mode) &&
	       st.st_ctim.tv_sec == set->changed.tv_sec &&
	       st.st_ctim.tv_nsec == set->changed.tv_nsec;
}

static const char *add(struct coop_masks *masks, const char *home, const char *names, size_t size)
{
	struct set *set = &masks->sets[masks->count];

	set->home = coop_mem_strdup(home);
	set->names = coop_mem_alloc(size);
	set->size = size;
	if (!set->home || !set->names) {
		clear(set);
		return NULL;
	}
	memcpy(set->names, names, size);
	if (make(masks, set) < 0) {
		masks->broken = true;
		clear(set);
		return NULL;
	}
	masks->count++;
	return set->path;
}

const char *coop_masks_find(struct coop_masks *masks, const char *home, const char *names,
			    size_t size)
{
	/* The last one first: a home changes now and then, and does not change back. */
	for (size_t i = masks->count; i--;) {
		const struct set *set = &masks->sets[i];
		if (set->size == size && !memcmp(set->names, names, size) &&
		    !strcmp(set->home, home) && is_whole(set))
			return set->path;
	}
	/* An overlay has no layers that lie in each other. */
	if (masks->broken || !size || masks->count == SETS_MAX ||
	    coop_path_below(masks->folder, home) || coop_path_below(home, masks->folder))
		return NULL;
	return add(masks, home, names, size);
}
