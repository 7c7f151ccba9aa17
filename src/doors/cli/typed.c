#include "doors/cli/typed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io/paths.h"

#define LINKS_MAX 40 /* the kernel follows no more */
#define OPEN_FLAGS (O_PATH | O_NOFOLLOW | O_CLOEXEC)

/* From a folder downwards, name by name: each is opened once, and what is looked at is what was
 * opened. */
struct walk {
	int top;           /* where it begins, and what it stays in */
	const char *place; /* the same as a path, without links */
	bool follow;       /* links that stay inside */
	int links;
	int at;
	char rest[2 * PATH_MAX];
	struct coop_error *error;
};

static int where_is(int fd, char ret_path[PATH_MAX])
{
	char link[64];
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	const ssize_t size = readlink(link, ret_path, PATH_MAX - 1);
	if (size < 0)
		return -errno;
	ret_path[size] = '\0';
	return 0;
}

static bool lies_in(const char *path, const char *folder)
{
	const size_t length = strlen(folder);
	return length == 1 || (strncmp(path, folder, length) == 0 &&
			       (path[length] == '/' || path[length] == '\0'));
}

/* The link is what was opened last; what it says may be less than where it leads. */
static int refuse(const struct walk *walk, int link, const char *target)
{
	char name[PATH_MAX], leads[PATH_MAX];
	if (where_is(link, name) < 0)
		(void)snprintf(name, sizeof(name), "?");
	const char *real = realpath(name, leads) ? leads : target;
	cli_error(walk->error, "invalid_input",
		  walk->follow ? "the link %.110s leads to %.110s, out of the folder that you are "
				 "in, and a command may have left it: type %.110s if you mean that"
			       : "on the way is the link %.110s, which leads to %.110s; names with "
				 ".. are taken without links: type %.110s if you mean that",
		  name, real, real);
	return -EXDEV;
}

static void move_to(struct walk *walk, int fd)
{
	if (walk->at != walk->top)
		(void)close(walk->at);
	walk->at = fd;
}

/* Puts what the link says before the rest. */
static int follow(struct walk *walk, int link)
{
	char target[PATH_MAX], longer[2 * PATH_MAX];
	const ssize_t size = readlinkat(link, "", target, sizeof(target) - 1);
	if (size < 0)
		return -errno;
	target[size] = '\0';
	const char *words = target;
	if (*target == '/') {
		words = coop_paths_behind(walk->place, target);
		if (walk->follow && words)
			move_to(walk, walk->top);
	}
	if (!walk->follow || !words)
		return refuse(walk, link, target);
	if (++walk->links > LINKS_MAX)
		return -ELOOP;
	const int n = snprintf(longer, sizeof(longer), "%s/%s", words, walk->rest);
	if (n < 0 || (size_t)n >= sizeof(longer))
		return -ENAMETOOLONG;
	memcpy(walk->rest, longer, (size_t)n + 1);
	return 0;
}

static bool at_top(const struct walk *walk)
{
	struct stat top, at;
	return fstat(walk->top, &top) == 0 && fstat(walk->at, &at) == 0 &&
	       top.st_dev == at.st_dev && top.st_ino == at.st_ino;
}

/* One name further. `link` is the last that was followed, -1 at first: only links say "..", what
 * was typed has none. */
static int step(struct walk *walk, const char *name, int *link)
{
	struct stat status;
	if (strcmp(name, "..") == 0 && at_top(walk))
		return *link < 0 ? -EXDEV : refuse(walk, *link, "..");
	int next = openat(walk->at, name, OPEN_FLAGS);
	if (next < 0 || fstat(next, &status) < 0) {
		const int error = errno;
		if (next >= 0)
			(void)close(next);
		return -error;
	}
	if (!S_ISLNK(status.st_mode)) {
		move_to(walk, next);
		return 0;
	}
	if (*link >= 0)
		(void)close(*link);
	*link = next;
	return follow(walk, next);
}

/* Cuts the first name off the rest. False: there is none. */
static bool next_name(struct walk *walk, char ret_name[NAME_MAX + 1])
{
	const char *name = walk->rest;
	size_t size = 0;
	do {
		name += size;
		name += strspn(name, "/");
		size = strcspn(name, "/");
	} while (size == 1 && *name == '.');
	if (size > NAME_MAX)
		size = NAME_MAX; /* no such name is there */
	memcpy(ret_name, name, size);
	ret_name[size] = '\0';
	name += size;
	memmove(walk->rest, name, strlen(name) + 1);
	return size > 0;
}

/* The descriptor, or -errno. */
static int go(struct walk *walk, char ret_path[PATH_MAX])
{
	char name[NAME_MAX + 1];
	int link = -1, r = 0;
	walk->at = walk->top;
	while (r == 0 && next_name(walk, name))
		r = step(walk, name, &link);
	int fd = r == 0 ? fcntl(walk->at, F_DUPFD_CLOEXEC, 3) : -1;
	if (r == 0)
		r = fd < 0 ? -errno : where_is(fd, ret_path);
	/* A folder that was moved meanwhile may have led out all the same. */
	if (r == 0 && !lies_in(ret_path, walk->place))
		r = link < 0 ? -EXDEV : refuse(walk, link, ret_path);
	move_to(walk, walk->top);
	if (link >= 0)
		(void)close(link);
	if (r < 0 && fd >= 0)
		(void)close(fd);
	return r < 0 ? r : fd;
}

static int walk_from(const char *place, const char *rest, bool follow, char ret_path[PATH_MAX],
		     struct coop_error *error)
{
	struct walk walk = {.place = place, .follow = follow, .error = error};
	COOP_AUTO_FD int top = open(place, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (top < 0)
		return -errno;
	walk.top = top;
	(void)snprintf(walk.rest, sizeof(walk.rest), "%s", rest);
	return go(&walk, ret_path);
}

/* What both have in common, as long as a path. */
static void find_common(const char *one, const char *other, char ret[PATH_MAX])
{
	size_t end = 0;
	for (size_t i = 0; one[i] == other[i] || !one[i] || !other[i]; i++) {
		if ((one[i] == '/' || !one[i]) && (other[i] == '/' || !other[i]))
			end = i;
		if (!one[i] || !other[i])
			break;
	}
	(void)snprintf(ret, PATH_MAX, "%.*s", end ? (int)end : 1, end ? one : "/");
}

int cli_typed_open(const char *name, char ret_path[PATH_MAX], struct coop_error *error)
{
	char here[PATH_MAX], whole[2 * PATH_MAX], common[PATH_MAX];
	const bool absolute = *name == '/';
	*error = (struct coop_error){0};
	if (!*name)
		return -ENOENT;
	if (!getcwd(here, sizeof(here)) || *here != '/') {
		if (!absolute)
			return -errno;
		here[0] = '\0';
	}
	(void)snprintf(whole, sizeof(whole), "%s%s%s", absolute ? "" : here, absolute ? "" : "/",
		       name);
	coop_paths_plain(whole);
	if (strlen(whole) >= PATH_MAX)
		return -ENAMETOOLONG;
	const char *rest = *here ? coop_paths_behind(here, whole) : NULL;
	if (rest && here[1])
		return walk_from(here, rest, true, ret_path, error);
	if (!absolute && here[1]) {
		find_common(here, whole, common);
		return walk_from(common, whole + (common[1] ? strlen(common) : 0), false, ret_path,
				 error);
	}
	COOP_AUTO_FD int fd = open(whole, O_PATH | O_CLOEXEC);
	const int r = fd < 0 ? -errno : where_is(fd, ret_path);
	return r < 0 ? r : COOP_TAKE_FD(fd);
}
