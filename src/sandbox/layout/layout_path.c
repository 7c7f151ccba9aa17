#include "sandbox/layout/layout_path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/paths.h"
#include "base/text/glob.h"
#include "sandbox/layout/path_walk.h"
#include "sandbox/plan/plain_path.h"

#define LINKS_MAX 16
#define DEPTH_MAX 128

bool coop_path_below(const char *path, const char *folder)
{
	size_t size = strlen(folder);

	if (size == 1)
		return *path == '/';
	return !strncmp(path, folder, size) && (!path[size] || path[size] == '/');
}

bool coop_path_normal(const char *path)
{
	return coop_plain_path(path);
}

static int fits(int written)
{
	return written < 0 || (size_t)written >= COOP_PATH_SIZE ? -ENAMETOOLONG : 0;
}

/* By hand: a start joins hundreds, and printf costs more than all that is done with them. */
int coop_path_join(const char *folder, const char *name, char *ret)
{
	size_t front = folder[1] ? strlen(folder) : 0, size = strlen(name) + 1;

	if (front + 1 + size > COOP_PATH_SIZE)
		return -ENAMETOOLONG;
	memcpy(ret, folder, front);
	ret[front] = '/';
	memcpy(ret + front + 1, name, size);
	return 0;
}

void coop_path_parent(const char *path, char *ret)
{
	const char *slash = strrchr(path, '/');
	size_t size = slash && slash > path ? (size_t)(slash - path) : 1;

	memmove(ret, path, size);
	ret[size] = 0;
}

bool coop_path_cut(char *rest, char *ret)
{
	const char *name = rest + strspn(rest, "/");
	size_t size = strcspn(name, "/");

	memcpy(ret, name, size);
	ret[size] = 0;
	name += size;
	name += strspn(name, "/");
	memmove(rest, name, strlen(name) + 1);
	return size > 0;
}

int coop_path_follow(const char *link, char *at, char *rest)
{
	char target[COOP_PATH_SIZE], longer[2 * COOP_PATH_SIZE];
	ssize_t size = readlink(link, target, sizeof target - 1);

	if (size <= 0)
		return size < 0 ? -errno : -ENOENT;
	target[size] = 0;
	int n = snprintf(longer, sizeof longer, "%s/%s", target, rest);
	if (n < 0 || (size_t)n >= COOP_PATH_SIZE)
		return -ENAMETOOLONG;
	memcpy(rest, longer, (size_t)n + 1);
	if (*target == '/')
		memcpy(at, "/", 2);
	return 0;
}

int coop_path_compare(const char *one, const char *other)
{
	while (*one && *one == *other) {
		one++;
		other++;
	}
	if (*one == *other)
		return 0;
	/* The end comes first, then the slash, then all other bytes. */
	if (!*one || !*other)
		return *one ? 1 : -1;
	if (*one == '/' || *other == '/')
		return *one == '/' ? -1 : 1;
	return (unsigned char)*one < (unsigned char)*other ? -1 : 1;
}

/* Puts the target of the link `path` in its place. */
static int follow(char *path)
{
	char target[COOP_PATH_SIZE], folder[COOP_PATH_SIZE];
	ssize_t size = readlink(path, target, sizeof target - 1);

	if (size < 0)
		return -errno;
	target[size] = 0;
	if (*target == '/')
		return fits(snprintf(path, COOP_PATH_SIZE, "%s", target));
	coop_path_parent(path, folder);
	return coop_path_join(folder, target, path);
}

int coop_path_resolve(const char *path, char *ret, bool *ret_exists)
{
	char head[COOP_PATH_SIZE], rest[COOP_PATH_SIZE] = "", real[PATH_MAX];
	struct stat st;
	int links = 0, r = fits(snprintf(head, sizeof head, "%s", path));

	if (r < 0)
		return r;
	while (!realpath(head, real)) {
		if (errno != ENOENT && errno != ENOTDIR)
			return -errno;
		if (lstat(head, &st) == 0 && S_ISLNK(st.st_mode)) {
			r = ++links > LINKS_MAX ? -ELOOP : follow(head);
			if (r < 0)
				return r;
			continue;
		}
		char *slash = strrchr(head, '/');
		char longer[2 * COOP_PATH_SIZE];
		if (!slash || !head[1])
			return -ENOENT;
		(void)snprintf(longer, sizeof longer, "%s%s", slash, rest);
		r = fits(snprintf(rest, sizeof rest, "%s", longer));
		if (r < 0)
			return r;
		slash[slash == head] = 0;
	}
	r = fits(snprintf(ret, COOP_PATH_SIZE, "%s%s", real[1] || !*rest ? real : "", rest));
	if (r == 0 && *rest)
		coop_paths_plain(ret);
	*ret_exists = !*rest;
	return r;
}

int coop_path_expand(const char *path, const char *home, char *ret)
{
	if (strncmp(path, "~/", 2) != 0)
		return fits(snprintf(ret, COOP_PATH_SIZE, "%s", path));
	return home ? coop_path_join(home, path + 2, ret) : -ENOENT;
}

struct search {
	const struct coop_lookable *seen;
	size_t matches, *entries;
	void (*tell)(void *context, const char *path);
	void *context;
	int failed;
};

static void search_in(struct search *search, const char *folder, const char *pattern, int depth);

static bool may_search(const struct search *search, const char *folder)
{
	char real[COOP_PATH_SIZE];

	return !search->seen || coop_path_walk(search->seen, folder, real) == 0;
}

/* `path` fits the pattern so far; `rest` is what follows, without its slash. */
static void search_on(struct search *search, const char *path, const char *rest, int depth)
{
	struct stat st;

	if (*rest) {
		search_in(search, path, rest, depth + 1);
	} else if (lstat(path, &st) == 0) {
		if (search->matches == 0)
			search->failed = -E2BIG;
		else
			search->matches--;
		if (!search->failed)
			search->tell(search->context, path);
	}
}

static bool is_folder(const char *path, const struct dirent *entry)
{
	struct stat st;

	if (entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_DIR;
	return lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* All names in the folder: those that fit `name` lead on to `rest`; without a name every folder is
 * searched by that. */
static void search_names(struct search *search, const char *folder, const char *name,
			 const char *rest, int depth)
{
	char path[COOP_PATH_SIZE];
	DIR *dir = may_search(search, folder) ? opendir(folder) : NULL;

	if (!dir)
		return;
	for (const struct dirent *entry; !search->failed && (entry = readdir(dir));) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		if ((*search->entries)-- == 0) {
			*search->entries = 0;
			search->failed = -E2BIG;
			break;
		}
		if (coop_path_join(folder, entry->d_name, path) < 0)
			continue;
		if (!name && is_folder(path, entry))
			search_in(search, path, rest, depth + 1);
		else if (name && coop_glob_match(name, entry->d_name, NULL))
			search_on(search, path, rest, depth);
	}
	(void)closedir(dir);
}

static void search_in(struct search *search, const char *folder, const char *pattern, int depth)
{
	char name[NAME_MAX + 1], path[COOP_PATH_SIZE];
	size_t size = strcspn(pattern, "/");
	const char *rest = pattern[size] ? pattern + size + 1 : pattern + size;

	if (search->failed || size >= sizeof name || depth > DEPTH_MAX)
		return;
	memcpy(name, pattern, size);
	name[size] = 0;
	if (!strcmp(name, "**")) {
		/* At the end it means all that is in the folder. */
		search_in(search, folder, *rest ? rest : "*", depth + 1);
		if (*rest)
			search_names(search, folder, NULL, pattern, depth);
	} else if (coop_glob_special(name)) {
		search_names(search, folder, name, rest, depth);
	} else if (coop_path_join(folder, name, path) == 0 &&
		   (*rest || may_search(search, folder))) {
		search_on(search, path, rest, depth);
	}
}

int coop_path_glob(const char *pattern, const struct coop_lookable *seen, size_t matches,
		   size_t *entries, void (*tell)(void *context, const char *path), void *context)
{
	struct search search = {.seen = seen,
				.matches = matches,
				.entries = entries,
				.tell = tell,
				.context = context};

	if (*pattern == '/')
		search_in(&search, "/", pattern + 1, 0);
	return search.failed;
}
