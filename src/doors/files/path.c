#include "doors/files/path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

int files_path_open(const char *path, int flags, mode_t mode)
{
	const struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_CLOEXEC),
		.mode = mode,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	COOP_AUTO_FD int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;

	int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = open(path, flags | O_CLOEXEC, mode);
	return fd < 0 ? -errno : fd;
}

int files_path_not_directory(const char *path)
{
	COOP_AUTO_FD int fd = files_path_open(path, O_PATH, 0);

	return fd < 0 ? -ENOENT : -ENOTDIR;
}

int files_path_real(int fd, char ret_path[FILES_PATH_MAX])
{
	static const char gone[] = " (deleted)";
	char link[32], path[FILES_PATH_MAX];

	(void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t size = readlink(link, path, sizeof path);
	if (size < 0)
		return -errno;
	if ((size_t)size >= sizeof path)
		return -ENAMETOOLONG;
	path[size] = '\0';
	/* Pipes, and what lies outside of this process's root, have no path that begins with a
	 * slash. */
	if (path[0] != '/')
		return -ENOENT;
	if ((size_t)size >= sizeof gone && strcmp(path + size + 1 - sizeof gone, gone) == 0)
		return -ENOENT;
	memcpy(ret_path, path, (size_t)size + 1);
	return 0;
}

int files_path_join(const char *directory, const char *name, char ret_path[FILES_PATH_MAX])
{
	const char *slash = directory[1] ? "/" : "";
	int n = snprintf(ret_path, FILES_PATH_MAX, "%s%s%s", directory, slash, name);

	return n < 0 || n >= (int)FILES_PATH_MAX ? -ENAMETOOLONG : 0;
}

/* Goes to the parent of the real directory that `path` means. */
static int go_up(char path[FILES_PATH_MAX])
{
	COOP_AUTO_FD int fd = files_path_open(path, O_PATH | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	int r = files_path_real(fd, path);
	if (r < 0)
		return r;
	char *slash = strrchr(path, '/');
	slash[slash == path ? 1 : 0] = '\0';
	return 0;
}

static int add_part(char path[FILES_PATH_MAX], const char *part, size_t size)
{
	const size_t length = path[1] ? strlen(path) : 0;

	if (length + 1 + size + 1 > FILES_PATH_MAX)
		return -ENAMETOOLONG;
	path[length] = '/';
	memcpy(path + length + 1, part, size);
	path[length + 1 + size] = '\0';
	return 0;
}

int files_path_clean(const char *start, const char *path, char ret_path[FILES_PATH_MAX])
{
	char clean[FILES_PATH_MAX] = "/";
	int r = 0;

	if (!*path)
		return -EINVAL;
	if (*path != '/')
		(void)snprintf(clean, sizeof clean, "%s", start);
	while (*path && r == 0) {
		const size_t size = strcspn(path, "/");
		if (size == 2 && memcmp(path, "..", 2) == 0)
			r = go_up(clean);
		else if (size > 0 && !(size == 1 && *path == '.'))
			r = add_part(clean, path, size);
		path += size;
		path += strspn(path, "/");
	}
	if (r == 0)
		memcpy(ret_path, clean, sizeof clean);
	return r;
}

int files_path_open_parent(const char *path, const char **ret_name)
{
	char parent[FILES_PATH_MAX];
	const char *slash = strrchr(path, '/');
	const size_t length = (size_t)(slash - path);

	if (!slash[1])
		return -EBUSY;
	memcpy(parent, path, length);
	parent[length] = '\0';
	int fd = files_path_open(length ? parent : "/", O_PATH | O_DIRECTORY, 0);
	if (fd >= 0)
		*ret_name = slash + 1;
	return fd;
}

static bool is_directory(const char *path)
{
	struct stat found;
	COOP_AUTO_FD int fd = files_path_open(path, O_PATH, 0);

	return fd >= 0 && fstat(fd, &found) == 0 && S_ISDIR(found.st_mode);
}

/* One directory whose parent is there. */
static int make_one(const char *path)
{
	const char *name = NULL;
	COOP_AUTO_FD int parent = files_path_open_parent(path, &name);

	if (parent < 0)
		return parent;
	if (mkdirat(parent, name, 0777) == 0)
		return 0;
	/* A file system that is read-only says so even of what is there. */
	const int error = errno;
	return is_directory(path) ? 0 : -error;
}

int files_path_make(const char *path)
{
	char prefix[FILES_PATH_MAX];

	if (is_directory(path))
		return 0;
	for (const char *end = path; *end;) {
		end += 1 + strcspn(end + 1, "/");
		const size_t length = (size_t)(end - path);
		memcpy(prefix, path, length);
		prefix[length] = '\0';
		int r = is_directory(prefix) ? 0 : make_one(prefix);
		if (r < 0)
			return r == -EEXIST && *end ? -ENOTDIR : r;
	}
	return 0;
}
