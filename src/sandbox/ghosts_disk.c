#include "sandbox/ghosts_disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define PATH_BYTES 4096

void coop_ghost_parent_close(struct coop_ghost_parent *parent)
{
	if (parent->fd >= 0)
		(void)close(parent->fd);
	parent->fd = -1;
}

/* The folder that the path lies in; *ret_name is the rest. An fd, which stays the parent's, or -errno. */
static int open_parent(struct coop_ghost_parent *parent, const char *path, const char **ret_name)
{
	struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
			       .resolve = RESOLVE_NO_SYMLINKS};
	const char *slash = strrchr(path, '/');

	if (*path != '/' || !slash[1] || (size_t)(slash - path) >= sizeof parent->path)
		return -EINVAL;
	size_t size = (size_t)(slash - path);
	*ret_name = slash + 1;
	if (parent->fd >= 0 && parent->size == size && !memcmp(parent->path, path, size))
		return parent->fd;
	coop_ghost_parent_close(parent);
	memcpy(parent->path, path, size);
	parent->path[size] = 0;
	parent->size = size;
	parent->fd =
		(int)syscall(SYS_openat2, AT_FDCWD, size ? parent->path : "/", &how, sizeof how);
	return parent->fd < 0 ? -errno : parent->fd;
}

static bool is_empty(int parent, const char *name)
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

static bool same(int parent, const char *name, const struct coop_ghost_mark *mark)
{
	struct stat st;

	return fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_dev == mark->dev &&
	       st.st_ino == mark->ino &&
	       (mark->folder ? S_ISDIR(st.st_mode) : S_ISSOCK(st.st_mode));
}

bool coop_ghost_unchanged(struct coop_ghost_parent *parent, const char *path,
			  const struct coop_ghost_mark *mark)
{
	const char *name;
	int fd = open_parent(parent, path, &name);

	return fd >= 0 && same(fd, name, mark) && (!mark->folder || is_empty(fd, name));
}

void coop_ghost_remove(struct coop_ghost_parent *parent, const char *path,
		       const struct coop_ghost_mark *mark)
{
	const char *name;
	int fd = open_parent(parent, path, &name);

	/* A folder that got something meanwhile stays, as the kernel removes only empty ones. */
	if (fd >= 0 && same(fd, name, mark))
		(void)unlinkat(fd, name, mark->folder ? AT_REMOVEDIR : 0);
}

int coop_ghost_make(struct coop_ghost_parent *parent, const char *path, bool folder,
		    struct coop_ghost_mark *ret_mark)
{
	const char *name;
	struct stat st, around;
	int fd = open_parent(parent, path, &name);

	if (fd < 0)
		return fd;
	if ((folder ? mkdirat(fd, name, 0755) : mknodat(fd, name, S_IFSOCK | 0444, 0)) < 0)
		return -errno;
	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	/* It belongs to whom the folder belongs to, who can then remove what root's keeper should ever leave. */
	if (geteuid() == 0 && fstat(fd, &around) == 0 &&
	    (around.st_uid != st.st_uid || around.st_gid != st.st_gid))
		(void)!fchownat(fd, name, around.st_uid, around.st_gid, AT_SYMLINK_NOFOLLOW);
	*ret_mark = (struct coop_ghost_mark){.dev = st.st_dev, .ino = st.st_ino, .folder = folder};
	return 0;
}

int coop_ghost_list_add(struct coop_buf *text, const char *path, const struct coop_ghost_mark *mark)
{
	char front[64];
	int size = snprintf(front, sizeof front, "%c %ju %ju ", mark->folder ? 'd' : 's',
			    (uintmax_t)mark->dev, (uintmax_t)mark->ino);
	int r = coop_buf_append(text, front, (size_t)size);

	return r < 0 ? r : coop_buf_append(text, path, strlen(path) + 1);
}

/* In place: one call more or less often. A keeper that is killed in between leaves a list whose last entry is cut, and that is told by
 * its missing NUL. */
int coop_ghost_list_write(int fd, const struct coop_buf *text)
{
	const uint8_t *bytes = coop_buf_front(text);
	size_t size = coop_buf_size(text);

	for (size_t done = 0; done < size;) {
		ssize_t n = pwrite(fd, bytes + done, size - done, (off_t)done);
		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return ftruncate(fd, (off_t)size) < 0 ? -errno : 0;
}

static void remove_line(const char *line)
{
	uintmax_t dev, ino;
	char kind;
	int used = 0;

	if (sscanf(line, "%c %ju %ju %n", &kind, &dev, &ino, &used) != 3 || !used)
		return;
	struct coop_ghost_mark mark = {.dev = (dev_t)dev, .ino = (ino_t)ino, .folder = kind == 'd'};
	struct coop_ghost_parent parent = {.fd = -1};
	coop_ghost_remove(&parent, line + used, &mark);
	coop_ghost_parent_close(&parent);
}

void coop_ghost_list_remove_all(int fd)
{
	struct coop_buf text = {0};
	uint8_t *place;
	ssize_t n = 0;

	while (coop_buf_size(&text) < COOP_GHOST_LIST_MAX &&
	       (place = coop_buf_reserve(&text, PATH_BYTES)) &&
	       (n = pread(fd, place, PATH_BYTES, (off_t)coop_buf_size(&text))) > 0)
		coop_buf_commit(&text, (size_t)n);
	const char *line = (const char *)coop_buf_front(&text), *end = line + coop_buf_size(&text);
	while (line && line < end) {
		const char *nul = memchr(line, 0, (size_t)(end - line));
		if (!nul)
			break;
		remove_line(line);
		line = nul + 1;
	}
	coop_buf_clear(&text);
}
