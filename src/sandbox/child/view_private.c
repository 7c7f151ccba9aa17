/* The private parts of a view: file systems that are made for it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/io/kernel.h"
#include "sandbox/child/namespaces.h"
#include "sandbox/child/view.h"

#define NUMBER_MAX 24
#define PATH_BYTES 4096
#define SHM_SIZE "64m"
/* Room for the files that are injected, which the keeper bounds, and for what covers others. */
#define COVERS_SIZE ((17u << 20) + 65536u)
#define COVERS_INODES 320u

int coop_view_fs(const char *kind, const char *const *options, uint64_t attributes)
{
	int fs = (int)syscall(SYS_fsopen, kind, FSOPEN_CLOEXEC);
	int r = fs < 0 ? -errno : 0;

	for (; r == 0 && options && options[0]; options += 2) {
		unsigned command = options[1] ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;
		if (syscall(SYS_fsconfig, fs, command, options[0], options[1], 0) < 0)
			r = -errno;
	}
	if (r == 0 && syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		r = -errno;
	if (r == 0) {
		r = (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, (unsigned)attributes);
		r = r < 0 ? -errno : r;
	}
	if (fs >= 0)
		(void)close(fs);
	return r;
}

/* snprintf is no system call, but neither does it use the heap for these. */
static int bounded(uint64_t size, uint64_t inodes, uint32_t mode, uint64_t attributes)
{
	char bytes[NUMBER_MAX], nodes[NUMBER_MAX], bits[NUMBER_MAX];
	const char *options[] = {"size", bytes, "nr_inodes", nodes, "mode", bits, NULL};

	(void)snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)size);
	(void)snprintf(nodes, sizeof nodes, "%llu", (unsigned long long)inodes);
	(void)snprintf(bits, sizeof bits, "%o", mode);
	return coop_view_fs("tmpfs", options, attributes | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
}

static int put_new(const struct coop_view *view, int tree, const char *path)
{
	if (tree < 0)
		return tree;
	return coop_view_put(tree, coop_view_make(view, path, true, 0755));
}

/* The covers must be attached somewhere, as older kernels clone nothing from a detached mount;
 * beneath the first private file system nobody inside can reach them. */
static int make_covers(struct coop_view *view, const char *path)
{
	int tree = bounded(COVERS_SIZE, COVERS_INODES, 0755, 0);

	if (tree < 0)
		return tree;
	int folder = openat(tree, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r = folder < 0 || mknodat(tree, "file", S_IFREG | 0444, 0) < 0 ||
				mknodat(tree, "absent", S_IFREG | 0644, 0) < 0 ||
				mkdirat(tree, "folder", 0555) < 0 ||
				mkdirat(tree, "files", 0755) < 0
			? -errno
			: 0;
	if (r == 0 && coop_mount_setattr(tree, 0, MOUNT_ATTR_RDONLY, 0, 0) < 0)
		r = -errno;
	if (r < 0) {
		(void)close(tree);
		return r;
	}
	view->covers = folder;
	return put_new(view, tree, path);
}

int coop_view_tmpfs(struct coop_view *view, const struct coop_plan_op *op)
{
	const char *path = view->text + op->path;
	uint64_t attributes = op->flags & COOP_OP_NOEXEC ? MOUNT_ATTR_NOEXEC : 0;
	int r = coop_view_save(view, path);

	if (r == 0 && view->covers < 0)
		r = make_covers(view, path);
	return r < 0 ? r : put_new(view, bounded(op->size, op->inodes, op->mode, attributes), path);
}

int coop_view_proc(struct coop_view *view, const struct coop_plan_op *op)
{
	uint64_t rest = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
	int tree = coop_view_fs("proc", NULL, view->counts ? rest : rest | MOUNT_ATTR_RDONLY);

	if (tree >= 0 && view->counts) {
		coop_namespaces_bound(tree, view->counts, true);
		if (coop_mount_setattr(tree, 0, MOUNT_ATTR_RDONLY, 0, 0) < 0) {
			int r = -errno;
			(void)close(tree);
			return r;
		}
	}
	return put_new(view, tree, view->text + op->path);
}

/* Names of our own, one below the folder, and no link is followed: there is nothing to look up
 * first. */
static int bind_device(int host, const char *name, int folder)
{
	if (mknodat(folder, name, S_IFREG | 0600, 0) < 0)
		return -errno;
	int tree = coop_open_tree(host, name,
				  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_SYMLINK_NOFOLLOW);
	if (tree < 0)
		return -errno;
	int r = coop_mount_setattr(tree, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC,
				   MOUNT_ATTR_RDONLY, 0) < 0 ||
				syscall(SYS_move_mount, tree, "", folder, name,
					MOVE_MOUNT_F_EMPTY_PATH) < 0
			? -errno
			: 0;
	(void)close(tree);
	return r;
}

static int mount_in(int folder, const char *name, int tree)
{
	int target = tree < 0 ? -1 : mkdirat(folder, name, 0755) < 0 ? -1 : coop_look(folder, name);

	if (tree < 0)
		return tree;
	return coop_view_put(tree, target < 0 ? -errno : target);
}

static int fill_dev(int host, int folder)
{
	static const char *const devices[] = {"null", "zero", "full", "random", "urandom", "tty"};
	static const char *const links[][2] = {{"fd", "/proc/self/fd"},
					       {"stdin", "/proc/self/fd/0"},
					       {"stdout", "/proc/self/fd/1"},
					       {"stderr", "/proc/self/fd/2"},
					       {"ptmx", "pts/ptmx"}};
	static const char *const terminals[] = {"ptmxmode", "0666", "mode", "0620", NULL};
	static const char *const shared[] = {"size", SHM_SIZE, "nr_inodes", "16k",
					     "mode", "1777",   NULL};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof devices / sizeof devices[0]; i++)
		r = bind_device(host, devices[i], folder);
	for (size_t i = 0; r == 0 && i < sizeof links / sizeof links[0]; i++)
		r = symlinkat(links[i][1], folder, links[i][0]) < 0 ? -errno : 0;
	if (r == 0)
		r = mount_in(
			folder, "pts",
			coop_view_fs("devpts", terminals, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC));
	if (r == 0)
		r = mount_in(
			folder, "shm",
			coop_view_fs("tmpfs", shared,
				     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC));
	if (r == 0)
		r = mknodat(folder, "console", S_IFREG | 0600, 0) < 0 ? -errno : 0;
	return r;
}

int coop_view_dev(struct coop_view *view, const struct coop_plan_op *op)
{
	const char *path = view->text + op->path;
	int host = coop_view_source(view, "/dev");
	int r = host < 0 ? host : coop_view_save(view, "/dev");
	int tree = r < 0 ? r : bounded(65536, 64, 0755, MOUNT_ATTR_NOEXEC);
	int folder = tree < 0 ? -1 : openat(tree, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (tree < 0)
		return tree;
	/* Attached first: nothing can be mounted in what is detached. */
	r = put_new(view, tree, path);
	if (r == 0)
		r = folder < 0 ? -EMFILE : fill_dev(host, folder);
	if (r == 0) {
		int own = coop_view_target(view, path);
		r = own < 0                                                   ? own
		    : coop_mount_setattr(own, 0, MOUNT_ATTR_RDONLY, 0, 0) < 0 ? -errno
									      : 0;
		if (own >= 0)
			(void)close(own);
	}
	(void)close(host);
	if (folder >= 0)
		(void)close(folder);
	return r;
}

/* The terminal belongs to the host's devices; its node is found again by its number, so that
 * programs can tell its name. */
int coop_view_console(struct coop_view *view)
{
	struct stat own, found;
	char name[NUMBER_MAX + 16];

	if (fstat(view->terminal, &own) < 0)
		return -errno;
	(void)snprintf(name, sizeof name, "/dev/pts/%u", minor(own.st_rdev));
	int node = coop_view_source(view, name);
	if (node < 0)
		return 0; /* the old root is gone: it has no name */
	bool same = fstat(node, &found) == 0 && found.st_rdev == own.st_rdev;
	int target = same ? coop_view_target(view, "/dev/console") : -1;
	int tree = target < 0 ? -1
			      : coop_open_tree(node, "",
					       OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	(void)close(node);
	/* In another instance of the terminals it has no name at all. */
	if (tree < 0) {
		if (target >= 0)
			(void)close(target);
		return 0;
	}
	(void)coop_mount_setattr(tree, 0, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, MOUNT_ATTR_RDONLY,
				 0);
	return coop_view_put(tree, target);
}

/* The folder that path lies in, looked up once for all that follow in it. An fd, which stays the
 * view's, or -errno. */
static int beside(struct coop_view *view, const char *path, size_t size)
{
	char folder[PATH_BYTES];

	if (view->beside_path && view->beside_size == size &&
	    !memcmp(view->beside_path, path, size))
		return view->beside;
	if (size >= sizeof folder)
		return -ENAMETOOLONG;
	if (view->beside >= 0)
		(void)close(view->beside);
	memcpy(folder, path, size);
	folder[size] = 0;
	view->beside = coop_view_target(view, folder);
	view->beside_path = view->beside < 0 ? NULL : path;
	view->beside_size = size;
	return view->beside;
}

/* A name that is only not to be made, and mostly one of many: a placeholder stands there, which is
 * no folder. -ENOTDIR: it is one. */
static int cover_name(struct coop_view *view, const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	int folder = beside(view, path, (size_t)(name - path) - 1);

	if (folder < 0 || view->covers < 0)
		return folder < 0 ? folder : -EPROTO;
	int tree = coop_open_tree(view->covers, "absent", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (tree < 0)
		return -errno;
	/* No link is followed, here neither. */
	int r = syscall(SYS_move_mount, tree, "", folder, name, MOVE_MOUNT_F_EMPTY_PATH) < 0
			? -errno
			: 0;
	(void)close(tree);
	return r;
}

int coop_view_cover(struct coop_view *view, const struct coop_plan_op *op)
{
	int r = op->flags & COOP_OP_ABSENT ? cover_name(view, view->text + op->path) : -ENOTDIR;

	if (r != -ENOTDIR)
		return r;
	int target = coop_view_target(view, view->text + op->path);
	struct stat status;

	if (target < 0)
		return target;
	if (view->covers < 0 || fstat(target, &status) < 0) {
		(void)close(target);
		return -EPROTO;
	}
	const char *cover = S_ISDIR(status.st_mode)      ? "folder"
			    : op->flags & COOP_OP_ABSENT ? "absent"
							 : "file";
	int tree = coop_open_tree(view->covers, cover, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	return coop_view_put(tree < 0 ? -errno : tree, target);
}

/* Where the files of this plan are: a part of the covers that can be written, under the same roof.
 * All are injected one after the other, the first makes it. */
static int open_files(struct coop_view *view)
{
	int tree = coop_open_tree(view->covers, "files", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);

	if (tree < 0 || coop_mount_setattr(tree, 0, 0, MOUNT_ATTR_RDONLY, 0) < 0)
		return -errno;
	int folder = openat(tree, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int target = coop_look(view->covers, "files");
	int r = coop_view_put(tree, target < 0 ? -errno : target);
	view->files = folder;
	return r < 0 ? r : folder < 0 ? -EMFILE : 0;
}

static int write_all(int fd, const char *bytes, uint64_t size)
{
	while (size) {
		ssize_t n = write(fd, bytes, size);
		if (n < 0 && errno != EINTR)
			return -errno;
		bytes += n > 0 ? n : 0;
		size -= n > 0 ? (uint64_t)n : 0;
	}
	return 0;
}

int coop_view_file(struct coop_view *view, const struct coop_plan_op *op)
{
	char name[NUMBER_MAX];
	int r = view->covers < 0 ? -EPROTO : view->files < 0 ? open_files(view) : 0;

	if (r < 0)
		return r;
	(void)snprintf(name, sizeof name, "%u", view->file_count++);
	int file = openat(view->files, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	r = file < 0 ? -errno : write_all(file, view->text + op->data, op->size);
	if (r == 0 && fchmod(file, op->mode ? op->mode : 0444) < 0)
		r = -errno;
	if (file >= 0)
		(void)close(file);
	int tree =
		r < 0 ? r : coop_open_tree(view->files, name, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (r == 0 && (tree < 0 || coop_mount_setattr(tree, 0, MOUNT_ATTR_RDONLY, 0, 0) < 0))
		r = -errno;
	if (r < 0)
		return r;
	return coop_view_put(tree, coop_view_make(view, view->text + op->path, false, 0444));
}
