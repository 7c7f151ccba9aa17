#include "sandbox/child/view.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/io/kernel.h"

#define COMPONENT_MAX 256
#define PATH_BYTES 4096

void coop_view_init(struct coop_view *view)
{
	*view = (struct coop_view){.terminal = -1,
				   .root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC),
				   .makeable = -1,
				   .covers = -1,
				   .files = -1,
				   .beside = -1};
	view->old_root = view->root;
}

static const char *path_of(const struct coop_view *view, const struct coop_plan_op *op)
{
	return view->text + op->path;
}

int coop_view_source(const struct coop_view *view, const char *path)
{
	size_t best = 0;
	int root = view->old_root;

	for (unsigned i = 0; i < view->beneath_count; i++) {
		const char *top = view->beneath[i].path;
		size_t size = strlen(top);
		if (size >= best && !strncmp(path, top, size) &&
		    (path[size] == '/' || !path[size])) {
			best = size;
			root = view->beneath[i].fd;
		}
	}
	int fd = coop_look(root, path + best);
	return fd < 0 ? -errno : fd;
}

int coop_view_target(const struct coop_view *view, const char *path)
{
	int fd = coop_look(view->root, path);

	return fd < 0 ? -errno : fd;
}

static int make_one(int folder, const char *name, bool is_folder, uint32_t mode)
{
	if (is_folder)
		return mkdirat(folder, name, mode) < 0 && errno != EEXIST ? -errno : 0;
	int fd = openat(folder, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd < 0)
		return errno == EEXIST ? 0 : -errno;
	(void)close(fd);
	return 0;
}

/* What covers the place that `size` bytes of the path lead to and can still be written to: the way
 * that reaches furthest down there, else the root. `ret_size` is how much of the path leads to
 * it. */
static int find_makeable(const struct coop_view *view, const char *path, size_t size,
			 size_t *ret_size)
{
	int found = view->makeable;

	*ret_size = 0;
	for (unsigned i = 0; i < view->way_count; i++) {
		size_t top = view->ways[i].size;
		if (top > *ret_size && top <= size && !strncmp(path, view->ways[i].path, top) &&
		    (path[top] == '/' || top == size)) {
			*ret_size = top;
			found = view->ways[i].fd;
		}
	}
	return found;
}

/* The root itself, or a way down, may be read-only by now: then it is made through the other mount
 * of the same file system. `size` is the length of the parent's path. */
static int make_in_root(const struct coop_view *view, const char *path, size_t size,
			const char *name, bool folder, uint32_t mode)
{
	char parent[PATH_BYTES];
	size_t top;
	int makeable = find_makeable(view, path, size, &top);

	if (makeable < 0 || size >= sizeof parent)
		return -EROFS;
	memcpy(parent, path + top, size - top);
	parent[size - top] = 0;
	int twin = coop_look(makeable, parent);
	if (twin < 0)
		return -errno;
	int r = make_one(twin, name, folder, mode);
	(void)close(twin);
	return r;
}

int coop_view_make(const struct coop_view *view, const char *path, bool folder, uint32_t mode)
{
	int found = coop_view_target(view, path), at;
	const char *part = path;
	char name[COMPONENT_MAX];

	if (found != -ENOENT || (at = coop_look(view->root, "/")) < 0)
		return found;
	for (const char *end; *part == '/'; part = end) {
		end = strchrnul(part + 1, '/');
		size_t size = (size_t)(end - part) - 1;
		bool last = !*end;
		if (size >= sizeof name) {
			(void)close(at);
			return -ENAMETOOLONG;
		}
		memcpy(name, part + 1, size);
		name[size] = 0;
		int next = coop_look(at, name);
		if (next < 0 && errno == ENOENT) {
			int r = make_one(at, name, folder || !last, last ? mode : 0755);
			if (r == -EROFS)
				r = make_in_root(view, path, (size_t)(part - path), name,
						 folder || !last, last ? mode : 0755);
			next = r < 0 ? -1 : coop_look(at, name);
			errno = r < 0 ? -r : errno;
		}
		int error = errno;
		(void)close(at);
		if (next < 0)
			return -error;
		at = next;
	}
	return at;
}

int coop_view_save(struct coop_view *view, const char *path)
{
	if (view->beneath_count == COOP_VIEW_BENEATH_MAX)
		return -E2BIG;
	/* In a root of our own there is nothing beneath that could be a source. */
	if (view->empty_root)
		return 0;
	int fd = coop_view_source(view, path);
	/* What this identity cannot reach is no source either. */
	if (fd < 0)
		return fd == -ENOENT || fd == -EACCES ? 0 : fd;
	view->beneath[view->beneath_count].path = path;
	view->beneath[view->beneath_count++].fd = fd;
	return 0;
}

int coop_view_put(int tree, int target)
{
	int r = tree < 0 ? tree : target < 0 ? target : 0;

	if (r == 0 && coop_move_mount(tree, target) < 0)
		r = -errno;
	if (tree >= 0)
		(void)close(tree);
	if (target >= 0)
		(void)close(target);
	return r;
}

static int root_readonly(struct coop_view *view, const struct coop_plan_op *op)
{
	(void)op;
	return coop_mount_setattr(view->root, AT_RECURSIVE, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID,
				  0, COOP_MS_PRIVATE) < 0
		       ? -errno
		       : 0;
}

/* The new root stands on /tmp, which every host has, until it becomes the root. */
static int root_empty(struct coop_view *view, const struct coop_plan_op *op)
{
	static const char *const options[] = {"size", "1m",   "nr_inodes", "4k",
					      "mode", "0755", NULL};
	(void)op;
	if (coop_mount_setattr(view->root, AT_RECURSIVE, 0, 0, COOP_MS_PRIVATE) < 0)
		return -errno;
	int r = coop_view_save(view, "/tmp");
	int tree = r < 0 ? r : coop_view_fs("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	int root = tree < 0 ? -1 : openat(tree, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = coop_view_put(tree, coop_view_target(view, "/tmp"));
	if (r < 0)
		return r;
	view->root = root;
	view->empty_root = true;
	return root < 0 ? -EMFILE : 0;
}

static int pivot(struct coop_view *view, const struct coop_plan_op *op)
{
	(void)op;
	view->makeable =
		coop_open_tree(view->root, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (view->makeable < 0 || fchdir(view->root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 ||
	    syscall(SYS_umount2, ".", COOP_MNT_DETACH) < 0 || chdir("/") < 0)
		return -errno;
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0 || coop_mount_setattr(root, 0, MOUNT_ATTR_RDONLY, 0, 0) < 0)
		return -errno;
	(void)close(view->root);
	view->root = root;
	return 0;
}

/* Mounts below it that were read-only outside stay so: the kernel locks that. */
static int set_tree(int tree, const struct coop_plan_op *op)
{
	uint64_t set = MOUNT_ATTR_NOSUID | (op->flags & COOP_OP_DEVICES ? 0 : MOUNT_ATTR_NODEV) |
		       (op->flags & COOP_OP_NOEXEC ? MOUNT_ATTR_NOEXEC : 0);

	if (!(op->flags & COOP_OP_WRITABLE))
		set |= MOUNT_ATTR_RDONLY;
	if (coop_mount_setattr(tree, AT_RECURSIVE, set, 0, COOP_MS_PRIVATE) < 0)
		return -errno;
	/* One that was handed in is as its owner left it: what is read-only in it stays so. */
	if ((op->flags & COOP_OP_WRITABLE) && op->fd < 0 &&
	    coop_mount_setattr(tree, AT_RECURSIVE, 0, MOUNT_ATTR_RDONLY, 0) < 0 &&
	    coop_mount_setattr(tree, 0, 0, MOUNT_ATTR_RDONLY, 0) < 0 && errno != EPERM)
		return -errno;
	return 0;
}

static int clone_tree(int source)
{
	int tree = coop_open_tree(
		source, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_RECURSIVE);

	return tree < 0 ? -errno : tree;
}

static int tree(struct coop_view *view, const struct coop_plan_op *op)
{
	const char *path = path_of(view, op);
	struct stat status = {0};
	int held = -1, r = 0;

	if (op->fd >= 0) {
		held = view->extra_fds[op->fd];
		/* Its owner set it up; only what every mount of ours has is added. */
		if (fstat(held, &status) < 0)
			r = -errno;
	} else {
		int source = coop_view_source(view, op->source ? view->text + op->source : path);
		r = source < 0 ? source : fstat(source, &status) < 0 ? -errno : 0;
		if (r == 0 && op->ino && (status.st_ino != op->ino || status.st_dev != op->dev))
			r = -ESTALE;
		held = r < 0 ? r : clone_tree(source);
		if (source >= 0)
			(void)close(source);
		r = r < 0 ? r : held < 0 ? held : 0;
	}
	if (r == 0)
		r = set_tree(held, op);
	if (r < 0) {
		if (held >= 0)
			(void)close(held);
		return r;
	}
	bool folder = S_ISDIR(status.st_mode);
	return coop_view_put(held, coop_view_make(view, path, folder, folder ? 0755 : 0644));
}

/* Mounts a path on itself. */
static int rebind(const struct coop_view *view, const struct coop_plan_op *op, uint64_t set)
{
	int target = coop_view_target(view, path_of(view, op));
	int tree = target < 0 ? target : clone_tree(target);

	if (tree >= 0 && set && coop_mount_setattr(tree, AT_RECURSIVE, set, 0, 0) < 0) {
		int r = -errno;
		(void)close(tree);
		(void)close(target);
		return r;
	}
	return coop_view_put(tree, target);
}

static int readonly(struct coop_view *view, const struct coop_plan_op *op)
{
	return rebind(view, op, MOUNT_ATTR_RDONLY);
}

static int pin(struct coop_view *view, const struct coop_plan_op *op)
{
	return rebind(view, op, 0);
}

static int make_folder(struct coop_view *view, const struct coop_plan_op *op)
{
	int fd = coop_view_make(view, path_of(view, op), true, op->mode);

	if (fd >= 0)
		(void)close(fd);
	return fd < 0 ? fd : 0;
}

static int make_link(struct coop_view *view, const struct coop_plan_op *op)
{
	const char *path = path_of(view, op), *name = strrchr(path, '/') + 1;
	char parent[PATH_BYTES];
	size_t size = (size_t)(name - path);

	if (size >= sizeof parent)
		return -ENAMETOOLONG;
	memcpy(parent, path, size);
	parent[size > 1 ? size - 1 : size] = 0;
	int folder = coop_view_make(view, parent, true, 0755);
	if (folder < 0)
		return folder;
	int r = symlinkat(view->text + op->data, folder, name) < 0 && errno != EEXIST ? -errno : 0;
	(void)close(folder);
	return r;
}

/* Whether this identity may not go through the folder. */
static bool closed(const struct coop_view *view, const char *folder)
{
	int fd = coop_view_target(view, folder);

	if (fd < 0)
		return fd == -EACCES;
	bool refused = faccessat(fd, ".", F_OK, 0) < 0 && errno == EACCES;
	(void)close(fd);
	return refused;
}

/* Covers the closed folder that `size` bytes of the path name. The way down is made by who goes it,
 * through the cover's other mount: others that lead through the same folder come later. */
static int cover_with_way(struct coop_view *view, const char *path, size_t size, const char *top)
{
	static const char *const options[] = {"size", "64k",  "nr_inodes", "1k",
					      "mode", "0755", NULL};
	int cover = view->way_count == COOP_VIEW_WAYS_MAX
			    ? -E2BIG
			    : coop_view_fs("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);

	if (cover < 0)
		return cover;
	int twin = coop_open_tree(cover, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
	if (twin < 0 || coop_mount_setattr(cover, 0, MOUNT_ATTR_RDONLY, 0, 0) < 0) {
		int r = -errno;
		(void)close(cover);
		return r;
	}
	view->ways[view->way_count].path = path;
	view->ways[view->way_count].size = size;
	view->ways[view->way_count++].fd = twin;
	return coop_view_put(cover, coop_view_target(view, top));
}

static int way(struct coop_view *view, const struct coop_plan_op *op)
{
	const char *path = path_of(view, op);
	char top[PATH_BYTES];

	for (const char *at = path; (at = strchr(at + 1, '/'));) {
		size_t size = (size_t)(at - path);
		if (size >= sizeof top)
			return -ENAMETOOLONG;
		memcpy(top, path, size);
		top[size] = 0;
		if (!closed(view, top))
			continue;
		return cover_with_way(view, path, size, top);
	}
	return 0;
}

typedef int (*operation)(struct coop_view *view, const struct coop_plan_op *op);

static const operation operations[COOP_OP_COUNT] = {
	[COOP_OP_ROOT_READONLY] = root_readonly,
	[COOP_OP_ROOT_EMPTY] = root_empty,
	[COOP_OP_PIVOT] = pivot,
	[COOP_OP_TMPFS] = coop_view_tmpfs,
	[COOP_OP_PROC] = coop_view_proc,
	[COOP_OP_DEV] = coop_view_dev,
	[COOP_OP_LAYER] = coop_view_layer,
	[COOP_OP_TREE] = tree,
	[COOP_OP_READONLY] = readonly,
	[COOP_OP_PIN] = pin,
	[COOP_OP_COVER] = coop_view_cover,
	[COOP_OP_FILE] = coop_view_file,
	[COOP_OP_FOLDER] = make_folder,
	[COOP_OP_LINK] = make_link,
	[COOP_OP_WAY] = way,
};

int coop_view_build(struct coop_view *view, const struct coop_plan_op *ops, uint32_t count,
		    uint32_t *ret_failed)
{
	if (view->root < 0)
		return -EMFILE;
	/* What was found for other operations may be covered by now. */
	view->beside_path = NULL;
	for (uint32_t i = 0; i < count; i++) {
		const struct coop_plan_op *op = &ops[i];
		*ret_failed = i;
		int r = op->kind < COOP_OP_COUNT && operations[op->kind]
				? operations[op->kind](view, op)
				: -EPROTO;
		/* What this identity cannot reach is not there for it. */
		bool absent = r == -ENOENT || r == -EACCES;
		if (op->flags & COOP_OP_UNLOOKED)
			absent = absent || r == -ENOTDIR || r == -ELOOP || r == -ENAMETOOLONG;
		if (r < 0 && !(absent && (op->flags & COOP_OP_OPTIONAL)))
			return r;
	}
	return 0;
}
