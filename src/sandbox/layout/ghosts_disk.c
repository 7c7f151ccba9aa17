#include "sandbox/layout/ghosts_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io/paths.h"

#define PATH_BYTES 4096
#define STOCK_NAME "placeholder"
#define ANNOUNCED_SECONDS 60 /* from the line until it is made, on a disk that is slow */
#define CONTENT_MAX 256      /* of a plain one */

void coop_ghost_parent_close(struct coop_ghost_parent *parent)
{
	if (parent->fd >= 0)
		(void)close(parent->fd);
	if (parent->socket >= 0)
		(void)close(parent->socket);
	parent->fd = parent->socket = -1;
}

/* Whether further names of the stock may stand in the folder: root's keeper gives each
 * placeholder to the folder's owner. */
static bool serves(const struct coop_ghost_stock *stock, int folder)
{
	struct stat st;

	return stock && stock->folder >= 0 && fstat(folder, &st) == 0 &&
	       st.st_dev == stock->mark.dev &&
	       (geteuid() != 0 || (st.st_uid == stock->uid && st.st_gid == stock->gid));
}

/* The folder that the path lies in; *ret_name is the rest. An fd, which stays the parent's, or
 * -errno. */
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
	if (parent->fd < 0)
		return -errno;
	parent->strange = !serves(parent->stock, parent->fd);
	return parent->fd;
}

/* 0, -errno if it cannot be seen, -ESTALE if it is another. */
static int compare(int parent, const char *name, const struct coop_ghost_mark *mark)
{
	struct stat st;

	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	bool same = st.st_dev == mark->dev && st.st_ino == mark->ino &&
		    (st.st_mode & S_IFMT) == mark->type &&
		    (mark->type != S_IFREG || st.st_size == mark->size);
	return same ? 0 : -ESTALE;
}

bool coop_ghost_unchanged(struct coop_ghost_parent *parent, const char *path,
			  const struct coop_ghost_mark *mark)
{
	const char *name;
	int fd = open_parent(parent, path, &name);

	return fd >= 0 && compare(fd, name, mark) == 0 &&
	       (mark->type != S_IFDIR || coop_paths_is_empty(fd, name));
}

/* A folder that got something meanwhile stays, as the kernel removes only empty ones. Its
 * descriptor keeps the file system from freeing it at once. */
static int remove_in(int parent, const char *name, const struct coop_ghost_mark *mark, int *ret_fd)
{
	bool folder = mark->type == S_IFDIR;
	COOP_AUTO_FD int fd =
		folder ? openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	int r = compare(parent, name, mark);

	if (r == 0 && unlinkat(parent, name, folder ? AT_REMOVEDIR : 0) < 0)
		r = -errno;
	if (r == 0 && fd >= 0)
		*ret_fd = COOP_TAKE_FD(fd);
	return r;
}

/* The descriptor only names the folder, so its mode is set by way of /proc. */
static int set_mode(int parent, mode_t mode)
{
	char path[48];

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", parent);
	return chmod(path, mode & 07777);
}

int coop_ghost_remove(struct coop_ghost_parent *parent, const char *path,
		      const struct coop_ghost_mark *mark)
{
	const char *name;
	struct stat around;
	int fd = open_parent(parent, path, &name), folder = -1;

	if (fd < 0 || remove_in(fd, name, mark, &folder) != -EACCES)
		return folder;
	/* A command may close its folder before it ends. */
	if (fstat(fd, &around) < 0 || around.st_uid != geteuid() ||
	    set_mode(fd, around.st_mode | 0300) < 0)
		return -1;
	(void)remove_in(fd, name, mark, &folder);
	(void)set_mode(fd, around.st_mode);
	return folder;
}

bool coop_ghost_openable(struct coop_ghost_parent *parent, const char *path)
{
	const char *name;
	struct statx around;
	int fd = open_parent(parent, path, &name);

	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_UID, &around) < 0)
		return false;
	/* Root is refused by remote file systems alone, which may still serve the one for whom it
	 * works. */
	return (around.stx_uid == geteuid() || geteuid() == 0) &&
	       !(around.stx_attributes & STATX_ATTR_IMMUTABLE);
}

/* Gives the file its name, unless that is taken. */
static int put_name(int parent, const char *from, const char *name)
{
	if (renameat2(parent, from, parent, name, RENAME_NOREPLACE) == 0)
		return 0;
	int r = -errno;
	/* Remote file systems know links only. */
	if (r == -EINVAL)
		r = linkat(parent, from, parent, name, 0) < 0 ? -errno : 0;
	(void)unlinkat(parent, from, 0);
	return r;
}

static int create(int parent, const char *name)
{
	int fd = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0444);

	return fd < 0 ? -errno : fd;
}

/* The name of a plain file until it is whole. */
static void name_unfinished(const char *name, char ret[NAME_MAX + 1])
{
	(void)snprintf(ret, NAME_MAX + 1, "%.200s.coop-%ld", name, (long)getpid());
}

/* Nobody outside must see it half written. An fd of it, or -errno. */
static int make_plain(int parent, const char *name, const char *content)
{
	char other[NAME_MAX + 1];
	size_t size = strlen(content);

	name_unfinished(name, other);
	if (!size)
		return create(parent, name);
	(void)unlinkat(parent, other, 0);
	COOP_AUTO_FD int fd = create(parent, other);
	if (fd < 0)
		return fd;
	if (write(fd, content, size) != (ssize_t)size) {
		(void)unlinkat(parent, other, 0);
		return -ENOSPC;
	}
	int r = put_name(parent, other, name);
	return r < 0 ? r : COOP_TAKE_FD(fd);
}

/* Opens what was just made without asking what it is. The owner of the folder may have put
 * something else there since. An fd, or -errno. */
static int open_made(int parent, const char *name, mode_t mode)
{
	struct stat st;
	COOP_AUTO_FD int own = openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (own < 0 || fstat(own, &st) < 0)
		return -errno;
	bool same = st.st_uid == geteuid() && (st.st_mode & S_IFMT) == (mode & S_IFMT) &&
		    !(st.st_mode & 0777 & ~mode) && (S_ISDIR(mode) || st.st_nlink == 1);
	return same ? COOP_TAKE_FD(own) : -EEXIST;
}

/* An fd, or -errno. */
static int make_one(int parent, const struct coop_ghost *ghost, const char *name)
{
	if (!ghost->folder && ghost->content)
		return make_plain(parent, name, ghost->content);
	if (!ghost->folder) {
		if (mknodat(parent, name, S_IFSOCK | 0444, 0) == 0)
			return open_made(parent, name, S_IFSOCK | 0444);
		if (errno != EPERM && errno != EOPNOTSUPP)
			return -errno;
		if (ghost->never_folder)
			return make_plain(parent, name, "");
	}
	return mkdirat(parent, name, 0755) < 0 ? -errno : open_made(parent, name, S_IFDIR | 0755);
}

static int link_stock(struct coop_ghost_parent *parent, const char *name,
		      struct coop_ghost_mark *ret_mark)
{
	if (parent->strange)
		return -EXDEV;
	if (linkat(parent->stock->folder, STOCK_NAME, parent->fd, name, 0) == 0) {
		*ret_mark = parent->stock->mark;
		return 0;
	}
	int r = -errno;
	/* Another mount of the same file system, or no more names. */
	parent->strange = r != -EEXIST;
	return r;
}

/* All sockets of a folder are one with many names: file systems take their time to find and to free
 * an inode. 0; -errno: it did not work, or the name is taken. */
static int link_socket(const struct coop_ghost_parent *parent, const char *name,
		       struct coop_ghost_mark *ret_mark)
{
	char path[48];

	if (parent->socket < 0)
		return -ENOENT;
	*ret_mark = parent->socket_mark;
	if (linkat(parent->socket, "", parent->fd, name, AT_EMPTY_PATH) == 0)
		return 0;
	if (errno != ENOENT && errno != EPERM)
		return -errno;
	/* Kernels before 6.10 let only root link a descriptor, but anybody what /proc shows it
	 * as. */
	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", parent->socket);
	return linkat(AT_FDCWD, path, parent->fd, name, AT_SYMLINK_FOLLOW) < 0 ? -errno : 0;
}

int coop_ghost_stock_open(struct coop_ghost_stock *stock, const char *folder)
{
	COOP_AUTO_FD int fd = open(folder, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || (unlinkat(fd, STOCK_NAME, 0) < 0 && errno != ENOENT) ||
	    mknodat(fd, STOCK_NAME, S_IFSOCK | 0444, 0) < 0 ||
	    fstatat(fd, STOCK_NAME, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	*stock = (struct coop_ghost_stock){
		.folder = COOP_TAKE_FD(fd),
		.uid = st.st_uid,
		.gid = st.st_gid,
		.mark = {.dev = st.st_dev, .ino = st.st_ino, .type = S_IFSOCK}};
	return 0;
}

void coop_ghost_stock_close(struct coop_ghost_stock *stock)
{
	if (stock->folder < 0)
		return;
	(void)unlinkat(stock->folder, STOCK_NAME, 0);
	(void)close(stock->folder);
	*stock = COOP_GHOST_STOCK;
}

/* It belongs to whom the folder belongs to, who can then remove what root's keeper should ever
 * leave. A folder with something in it is one that somebody has put there since: it may be root's
 * own. */
static int give_away(int parent, int own, const struct stat *st)
{
	struct stat around;

	if (fstat(parent, &around) < 0)
		return -errno;
	if (around.st_uid == st->st_uid && around.st_gid == st->st_gid)
		return 0;
	if (S_ISDIR(st->st_mode) && !coop_paths_is_empty(own, "."))
		return -EEXIST;
	(void)!fchownat(own, "", around.st_uid, around.st_gid, AT_EMPTY_PATH);
	return 0;
}

/* By a descriptor: the name may be somebody else's by the next call. */
static int identify(int parent, int own, struct coop_ghost_mark *ret_mark)
{
	struct stat st;

	if (fstat(own, &st) < 0)
		return -errno;
	int r = geteuid() == 0 ? give_away(parent, own, &st) : 0;
	if (r < 0)
		return r;
	*ret_mark = (struct coop_ghost_mark){.dev = st.st_dev,
					     .ino = st.st_ino,
					     .type = st.st_mode & S_IFMT,
					     .size = S_ISREG(st.st_mode) ? st.st_size : 0};
	return 0;
}

int coop_ghost_make(struct coop_ghost_parent *parent, const struct coop_ghost *ghost,
		    struct coop_ghost_mark *ret_mark)
{
	const char *name;
	int fd = open_parent(parent, ghost->path, &name);

	if (fd < 0)
		return fd;
	if (!ghost->folder && !ghost->content &&
	    (link_stock(parent, name, ret_mark) == 0 || link_socket(parent, name, ret_mark) == 0))
		return 0;
	COOP_AUTO_FD int own = make_one(fd, ghost, name);
	int r = own < 0 ? own : identify(fd, own, ret_mark);
	if (r < 0)
		return r;
	if (ret_mark->type == S_IFSOCK && parent->socket < 0) {
		parent->socket = COOP_TAKE_FD(own);
		parent->socket_mark = *ret_mark;
	}
	return 0;
}

static bool is_same(const struct coop_ghost_mark *one, const struct coop_ghost_mark *other)
{
	return one->ino == other->ino && one->dev == other->dev && one->type == other->type &&
	       one->size == other->size;
}

int coop_ghost_list_add(struct coop_ghost_front *front, struct coop_buf *text, const char *path,
			const struct coop_ghost_mark *mark)
{
	if (!front->size || !is_same(&front->mark, mark)) {
		front->mark = *mark;
		front->size = (size_t)snprintf(front->text, sizeof front->text, "%ju %ju %ju %ju ",
					       (uintmax_t)mark->type, (uintmax_t)mark->dev,
					       (uintmax_t)mark->ino, (uintmax_t)mark->size);
	}
	int r = coop_buf_append(text, front->text, front->size);

	return r < 0 ? r : coop_buf_append(text, path, strlen(path) + 1);
}

/* In place, over what was there, which mostly is as long: to free and find room on disk again costs
 * more than all the rest. A keeper that is killed in between leaves the front of one and the rest
 * of another list: every line is checked before anything is removed by it. */
int coop_ghost_list_write(int fd, off_t at, struct coop_buf *text)
{
	int r = coop_buf_append(text, "", 1);
	const uint8_t *bytes = coop_buf_front(text);
	size_t size = coop_buf_size(text);

	if (r < 0)
		return r;

	for (size_t done = 0; done < size;) {
		ssize_t n = pwrite(fd, bytes + done, size - done, at + (off_t)done);
		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int announce_path(struct coop_buf *text, const char *path, size_t size, const char *rest)
{
	char front[64];
	int n = snprintf(front, sizeof front, "%ju 0 0 %ju ", (uintmax_t)S_IFSOCK,
			 (uintmax_t)time(NULL));
	int r = coop_buf_append(text, front, (size_t)n);

	if (r == 0)
		r = coop_buf_append(text, path, size);
	return r < 0 ? r : coop_buf_append(text, rest, strlen(rest) + 1);
}

int coop_ghost_list_announce(struct coop_buf *text, const struct coop_ghost *ghost)
{
	const char *name = strrchr(ghost->path, '/') + 1;
	char other[NAME_MAX + 1];
	int r = announce_path(text, ghost->path, strlen(ghost->path), "");

	if (r < 0 || !ghost->content || !*ghost->content)
		return r;
	name_unfinished(name, other);
	return announce_path(text, ghost->path, (size_t)(name - ghost->path), other);
}

/* Whether what stands there is what was announced at that time: a socket as nobody else makes them,
 * or something small that was made just then. */
static bool was_announced(const struct stat *st, const struct stat *around, time_t since)
{
	mode_t mode = st->st_mode & 07777;

	if (st->st_uid != geteuid() && st->st_uid != around->st_uid)
		return false;
	if (S_ISSOCK(st->st_mode))
		return mode == 0444;
	if (st->st_ctim.tv_sec < since - 1 || st->st_ctim.tv_sec > since + ANNOUNCED_SECONDS)
		return false;
	return S_ISDIR(st->st_mode)
		       ? !(mode & ~0755u)
		       : S_ISREG(st->st_mode) && !(mode & ~0444u) && st->st_size <= CONTENT_MAX;
}

static void remove_announced(const char *path, time_t since)
{
	struct coop_ghost_parent parent = COOP_GHOST_PARENT;
	struct stat st, around;
	const char *name;
	int fd = open_parent(&parent, path, &name), folder = -1;

	if (fd >= 0 && fstat(fd, &around) == 0 &&
	    fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    was_announced(&st, &around, since)) {
		const struct coop_ghost_mark mark = {.dev = st.st_dev,
						     .ino = st.st_ino,
						     .type = st.st_mode & S_IFMT,
						     .size = st.st_size};
		(void)remove_in(fd, name, &mark, &folder);
	}
	if (folder >= 0)
		(void)close(folder);
	coop_ghost_parent_close(&parent);
}

static void remove_line(const char *line)
{
	uintmax_t type, dev, ino, size;
	int used = 0;

	if (sscanf(line, "%ju %ju %ju %ju %n", &type, &dev, &ino, &size, &used) != 4 || !used ||
	    (type != S_IFDIR && type != S_IFSOCK && type != S_IFREG))
		return;
	if (!ino) {
		remove_announced(line + used, (time_t)size);
		return;
	}
	struct coop_ghost_mark mark = {
		.dev = (dev_t)dev, .ino = (ino_t)ino, .type = (mode_t)type, .size = (off_t)size};
	struct coop_ghost_parent parent = COOP_GHOST_PARENT;
	COOP_AUTO_FD int folder = coop_ghost_remove(&parent, line + used, &mark);
	(void)folder;
	coop_ghost_parent_close(&parent);
}

/* Whether an empty line, which ends a list, is among so many bytes at its end. */
static bool has_end(const struct coop_buf *text, size_t fresh)
{
	const uint8_t *bytes = coop_buf_front(text);
	size_t size = coop_buf_size(text);

	for (size_t i = size - fresh; i < size; i++) {
		if (!bytes[i] && (i == 0 || !bytes[i - 1]))
			return true;
	}
	return false;
}

int coop_ghost_list_read(int fd, struct coop_buf *text)
{
	uint8_t *place;
	ssize_t n = 0;

	while (coop_buf_size(text) < COOP_GHOST_LIST_MAX && !has_end(text, (size_t)n)) {
		place = coop_buf_reserve(text, PATH_BYTES);
		if (!place)
			return -ENOMEM;
		n = pread(fd, place, PATH_BYTES, (off_t)coop_buf_size(text));
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		coop_buf_commit(text, (size_t)n);
	}
	return 0;
}

void coop_ghost_list_remove_all(int fd)
{
	struct coop_buf text = {0};

	(void)coop_ghost_list_read(fd, &text); /* as far as it can be read */
	const char *line = (const char *)coop_buf_front(&text);
	const char *end = line ? line + coop_buf_size(&text) : NULL;
	while (line < end) {
		const char *nul = memchr(line, 0, (size_t)(end - line));
		if (!nul || nul == line)
			break;
		remove_line(line);
		line = nul + 1;
	}
	coop_buf_clear(&text);
}
