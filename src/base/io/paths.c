#include "base/io/paths.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const char *set_variable(const char *name)
{
	const char *value = getenv(name);

	return value && *value ? value : NULL;
}

static int fits(int written, size_t size)
{
	return written < 0 || (size_t)written >= size ? -ENAMETOOLONG : 0;
}

int coop_paths_socket(char *ret_path, size_t size)
{
	const char *given = set_variable("COOP_SOCKET");
	const char *runtime = set_variable("XDG_RUNTIME_DIR");
	int n;

	if (size > sizeof((struct sockaddr_un){0}).sun_path)
		size = sizeof((struct sockaddr_un){0}).sun_path;
	if (given)
		n = snprintf(ret_path, size, "%s", given);
	else if (runtime)
		n = snprintf(ret_path, size, "%s/coop/keeper.sock", runtime);
	else if (geteuid() == 0)
		n = snprintf(ret_path, size, "/run/coop/keeper.sock");
	else
		n = snprintf(ret_path, size, "/tmp/coop-%u/keeper.sock", geteuid());
	return fits(n, size);
}

static const char *home_of_user(void)
{
	const char *home = set_variable("HOME");
	const struct passwd *entry = home ? NULL : getpwuid(geteuid());

	if (home)
		return home;
	return entry && entry->pw_dir ? entry->pw_dir : "/nonexistent";
}

int coop_paths_state(char *ret_path, size_t size)
{
	const char *given = set_variable("COOP_STATE");
	const char *xdg = set_variable("XDG_STATE_HOME");

	if (given)
		return fits(snprintf(ret_path, size, "%s", given), size);
	if (xdg)
		return fits(snprintf(ret_path, size, "%s/coop", xdg), size);
	if (geteuid() == 0)
		return fits(snprintf(ret_path, size, "/var/lib/coop"), size);
	return fits(snprintf(ret_path, size, "%s/.local/state/coop", home_of_user()), size);
}

int coop_paths_data(char *ret_path, size_t size)
{
	const char *given = set_variable("COOP_DATA");
	const char *xdg = set_variable("XDG_DATA_HOME");

	if (given)
		return fits(snprintf(ret_path, size, "%s", given), size);
	if (geteuid() == 0)
		return fits(snprintf(ret_path, size, "/srv/coop"), size);
	if (xdg)
		return fits(snprintf(ret_path, size, "%s/coop", xdg), size);
	return fits(snprintf(ret_path, size, "%s/.local/share/coop", home_of_user()), size);
}

static int check_owned(const char *path)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return -errno;
	/* A link is followed only if it is ours: somebody else's could lead us anywhere. */
	if (S_ISLNK(st.st_mode) && st.st_uid == geteuid() && stat(path, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return -ENOTDIR;
	if (st.st_uid != geteuid() && st.st_uid != 0)
		return -EPERM;
	/* A sticky folder (/tmp itself) is as safe as the names in it. */
	if ((st.st_mode & 022) && !(st.st_mode & S_ISVTX))
		return -EPERM;
	return 0;
}

int coop_paths_make_dir(const char *path)
{
	if (mkdir(path, 0700) == 0)
		return 0;
	if (errno == EEXIST)
		return check_owned(path);
	if (errno != ENOENT)
		return -errno;
	int r = coop_paths_make_parent(path);
	if (r < 0)
		return r;
	return mkdir(path, 0700) == 0 || errno == EEXIST ? check_owned(path) : -errno;
}

int coop_paths_make_parent(const char *path)
{
	char parent[COOP_PATHS_MAX];
	const char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return 0;
	if ((size_t)(slash - path) >= sizeof parent)
		return -ENAMETOOLONG;
	memcpy(parent, path, (size_t)(slash - path));
	parent[slash - path] = 0;
	return coop_paths_make_dir(parent);
}

/* Cuts the last component off. False: there is nothing left to be looked at. */
static bool cut_last(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash)
		return false;
	slash[slash == path] = 0;
	return true;
}

/* The folder at fault is the one that exists: those below it were to be made. */
void coop_paths_explain_dir(const char *path, int status, char *ret_text, size_t size)
{
	char folder[COOP_PATHS_MAX];
	struct stat st = {0};

	(void)snprintf(folder, sizeof folder, "%s", path);
	while (lstat(folder, &st) < 0 && errno == ENOENT && cut_last(folder))
		;
	if (S_ISLNK(st.st_mode) && st.st_uid == geteuid())
		(void)!stat(folder, &st);
	if (status == -EPERM && st.st_uid != geteuid() && st.st_uid != 0)
		(void)snprintf(ret_text, size, "%s belongs to another user (uid %u)", folder,
			       st.st_uid);
	else if (status == -EPERM && (st.st_mode & 022) && !(st.st_mode & S_ISVTX))
		(void)snprintf(ret_text, size, "others may write to %s: chmod go-w %s", folder,
			       folder);
	else
		(void)snprintf(ret_text, size, "%s: %s", folder, strerror(-status));
}

void coop_paths_explain_parent(const char *path, int status, char *ret_text, size_t size)
{
	char parent[COOP_PATHS_MAX];

	(void)snprintf(parent, sizeof parent, "%s", path);
	coop_paths_explain_dir(cut_last(parent) ? parent : ".", status, ret_text, size);
}

bool coop_paths_is_empty(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	int names = 0;

	if (!dir) {
		if (fd >= 0)
			(void)close(fd);
		return false;
	}
	/* Itself and its parent are always there. */
	while (names < 3 && readdir(dir))
		names++;
	(void)closedir(dir);
	return names <= 2;
}

void coop_paths_remove_all(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *entries = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	char path[COOP_PATHS_MAX + 512];

	if (fd < 0) {
		(void)unlink(dir);
		return;
	}
	if (!entries)
		(void)close(fd);
	while (entries && (entry = readdir(entries))) {
		if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
			continue;
		(void)snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
		if (unlink(path) < 0 && errno == EISDIR)
			coop_paths_remove_all(path);
	}
	if (entries)
		(void)closedir(entries);
	(void)rmdir(dir); /* what cannot be removed is left for the next start */
}

void coop_paths_plain(char *path)
{
	char *end = path; /* of what is kept */

	for (const char *at = path; *at;) {
		const char *part = at + strspn(at, "/");
		size_t size = strcspn(part, "/");

		at = part + size;
		if (size == 0 || (size == 1 && *part == '.'))
			continue;
		if (size == 2 && part[0] == '.' && part[1] == '.') {
			while (end > path && *--end != '/')
				;
			continue;
		}
		*end++ = '/';
		memmove(end, part, size);
		end += size;
	}
	if (end == path)
		*end++ = '/';
	*end = 0;
}

const char *coop_paths_behind(const char *folder, const char *name)
{
	char part[COOP_PATHS_MAX], real[PATH_MAX];

	for (const char *at = name; *at;) {
		at = strchrnul(at + 1, '/');
		int n = snprintf(part, sizeof part, "%.*s", (int)(at - name), name);
		if (n < 0 || (size_t)n >= sizeof part)
			return NULL;
		if (realpath(part, real) && !strcmp(real, folder))
			return at;
	}
	return NULL;
}
