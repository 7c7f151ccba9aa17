#include "sandbox/layout/path_walk.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 40 /* the kernel follows no more */

struct walk {
	const struct coop_lookable *seen;
	int links;
	char at[COOP_PATH_SIZE];   /* a folder, without links */
	char rest[COOP_PATH_SIZE]; /* as it was written */
};

/* Puts what the link says before the rest. */
static int follow(struct walk *walk, const char *link)
{
	int r = coop_path_follow(link, walk->at, walk->rest);

	return r == 0 && ++walk->links > LINKS_MAX ? -ELOOP : r;
}

/* The place that the words mean, if they only go down. */
static void by_words(struct walk *walk, const char *place, char *ret)
{
	char name[COOP_PATH_SIZE], longer[COOP_PATH_SIZE];

	(void)snprintf(ret, COOP_PATH_SIZE, "%s", place);
	while (coop_path_cut(walk->rest, name)) {
		if (!strcmp(name, "."))
			continue;
		if (!strcmp(name, "..") || coop_path_join(ret, name, longer) < 0) {
			*ret = 0;
			return;
		}
		(void)snprintf(ret, COOP_PATH_SIZE, "%s", longer);
	}
}

/* One name further: 0, or where it ends as of coop_path_walk. */
static int step(struct walk *walk, const char *name, char *ret)
{
	const struct coop_lookable *seen = walk->seen;
	char path[COOP_PATH_SIZE];
	struct stat st;

	if (coop_path_join(walk->at, name, path) < 0)
		return -ENAMETOOLONG;
	bool may = seen->may(seen, path);
	/* Beside what leads there only links are of interest: another name of it may be one. */
	if (!may && seen->may(seen, walk->at)) {
		by_words(walk, path, ret);
		return -EXDEV;
	}
	bool there = lstat(path, &st) == 0;
	int error = errno;
	if (there && S_ISLNK(st.st_mode)) {
		int r = follow(walk, path);
		if (r < 0 && may)
			(void)snprintf(ret, COOP_PATH_SIZE, "%s", path);
		return r < 0 && !may ? -EXDEV : r;
	}
	if (!may && (!there || !seen->leads(seen, path))) {
		by_words(walk, path, ret);
		return -EXDEV;
	}
	if (!there || (*walk->rest && !S_ISDIR(st.st_mode))) {
		by_words(walk, path, ret);
		return there ? -ENOTDIR : -error;
	}
	(void)snprintf(walk->at, sizeof walk->at, "%s", path);
	return 0;
}

int coop_path_walk(const struct coop_lookable *seen, const char *path, char ret[COOP_PATH_SIZE])
{
	struct walk walk = {.seen = seen, .at = "/"};
	char name[COOP_PATH_SIZE];
	int n = snprintf(walk.rest, sizeof walk.rest, "%s", path);

	*ret = 0;
	if (n < 0 || (size_t)n >= sizeof walk.rest)
		return -ENAMETOOLONG;
	while (coop_path_cut(walk.rest, name)) {
		int r = 0;
		if (!strcmp(name, ".."))
			coop_path_parent(walk.at, walk.at);
		else if (strcmp(name, ".") != 0)
			r = step(&walk, name, ret);
		if (r < 0)
			return r;
	}
	(void)snprintf(ret, COOP_PATH_SIZE, "%s", walk.at);
	return seen->may(seen, ret) ? 0 : -EXDEV;
}

bool coop_path_begins_outside(const struct coop_lookable *seen, const char *pattern)
{
	char folder[COOP_PATH_SIZE], real[COOP_PATH_SIZE];

	(void)snprintf(folder, sizeof folder, "%.*s", (int)strcspn(pattern, "*?[\\"), pattern);
	coop_path_parent(folder, folder);
	return coop_path_walk(seen, folder, real) == -EXDEV;
}

int coop_path_open_plain(const char *path, int flags)
{
	struct open_how how = {.flags = (unsigned)(O_PATH | O_CLOEXEC | flags),
			       .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);

	/* Refused by a filter that knows no such call: at least the last name is no link. */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC | flags);
	return fd >= 0 ? fd : errno == ELOOP ? -EXDEV : -errno;
}

int coop_path_open(const struct coop_lookable *seen, const char *path, int flags,
		   char ret[COOP_PATH_SIZE])
{
	*ret = 0;
	if (!seen) {
		int fd = open(path, O_PATH | O_CLOEXEC | flags);
		return fd < 0 ? -errno : fd;
	}
	int r = coop_path_walk(seen, path, ret);
	return r < 0 ? r : coop_path_open_plain(ret, flags);
}
