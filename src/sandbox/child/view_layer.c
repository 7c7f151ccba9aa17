/* A folder seen as it is, with a private layer on top that takes all writes and hides some
 * names. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/io/kernel.h"
#include "sandbox/child/view.h"

#define COMPONENT_MAX 256
#define FD_PATH_MAX 64

/* Makes the folder of the upper layer with the rights of the one below, and opens both. 1; 0: below
 * there is no such folder, so that there is nothing to hide in it; or -errno. */
static int step_down(int upper, int lower, const char *name, int *ret_upper, int *ret_lower)
{
	struct stat status = {.st_mode = S_IFDIR | 0700};
	int below = lower < 0 ? -1 : coop_look(lower, name), r = 1;

	if (below >= 0 && (fstat(below, &status) < 0 || !S_ISDIR(status.st_mode)))
		r = 0;
	if (r && mkdirat(upper, name, status.st_mode & 0777) < 0 && errno != EEXIST)
		r = -errno;
	int at = r > 0 ? coop_look(upper, name) : -1;
	if (r > 0 && at < 0)
		r = -errno;
	if (r <= 0 && below >= 0)
		(void)close(below);
	*ret_upper = at;
	*ret_lower = below;
	return r;
}

/* What takes names away. All are one file with many names, as a link costs less than a file; and
 * most lie side by side. */
struct whiteout {
	int upper, lower;
	char first[COMPONENT_MAX]; /* the first one's name, in the layer's own top; "": none yet */
	/* path of the folder that the last one lay in, up to `size`; NULL: none */
	const char *folder;
	size_t size;
	/* that folder above and below; `at` -1: below there is none, so nothing needs to be
	 * hidden in it */
	int at, below;
};

/* The name is absent from now on, whatever comes to be below: an overlay takes a device 0:0 in the
 * upper layer for that, which anybody may make. */
static int put_whiteout(struct whiteout *whiteout, int folder, const char *name)
{
	if (*whiteout->first && linkat(whiteout->upper, whiteout->first, folder, name, 0) == 0)
		return 0;
	if (mknodat(folder, name, S_IFCHR, makedev(0, 0)) < 0)
		return errno == EEXIST ? 0 : -errno;
	if (!*whiteout->first && folder == whiteout->upper && strlen(name) < COMPONENT_MAX)
		memcpy(whiteout->first, name, strlen(name) + 1);
	return 0;
}

static void leave(struct whiteout *whiteout)
{
	if (whiteout->at >= 0)
		(void)close(whiteout->at);
	if (whiteout->below >= 0)
		(void)close(whiteout->below);
	whiteout->at = whiteout->below = -1;
}

/* Goes to the folder that the name lies in, `size` bytes of it. 0 or -errno. */
static int enter(struct whiteout *whiteout, const char *name, size_t size)
{
	char component[COMPONENT_MAX];
	int r = 1;

	leave(whiteout);
	whiteout->folder = name;
	whiteout->size = size;
	for (const char *end; r > 0 && size; name = end + 1) {
		int at, below;
		end = memchr(name, '/', size);
		size_t length = end ? (size_t)(end - name) : size;
		if (!length || length >= sizeof component)
			return -EINVAL;
		memcpy(component, name, length);
		component[length] = 0;
		bool top = whiteout->at < 0;
		r = step_down(top ? whiteout->upper : whiteout->at,
			      top ? whiteout->lower : whiteout->below, component, &at, &below);
		leave(whiteout);
		whiteout->at = r > 0 ? at : -1;
		whiteout->below = r > 0 ? below : -1;
		size -= end ? length + 1 : length;
		end = name + length;
	}
	return r < 0 ? r : 0;
}

static int hide(struct whiteout *whiteout, const char *name)
{
	const char *slash = strrchr(name, '/');
	size_t size = slash ? (size_t)(slash - name) : 0;
	int r = 0;

	if (!slash)
		return put_whiteout(whiteout, whiteout->upper, name);
	if (!whiteout->folder || whiteout->size != size ||
	    memcmp(whiteout->folder, name, size) != 0)
		r = enter(whiteout, name, size);
	if (r < 0 || whiteout->at < 0)
		return r;
	return put_whiteout(whiteout, whiteout->at, slash + 1);
}

/* `masks`: a folder with whiteouts that lies between; -1: none. */
static int stack(const struct coop_view *view, int lower, int masks, int layer, const char *path)
{
	char from[2 * FD_PATH_MAX], upper[FD_PATH_MAX], work[FD_PATH_MAX];
	const char *options[] = {"lowerdir", from,        "upperdir", upper, "workdir",
				 work,       "userxattr", NULL,       NULL};

	/* By fd, so that no path is looked up again; in the order of pairs, the flag is last. */
	if (masks >= 0)
		(void)snprintf(from, sizeof from, "/proc/self/fd/%d:/proc/self/fd/%d", masks,
			       lower);
	else
		(void)snprintf(from, sizeof from, "/proc/self/fd/%d", lower);
	(void)snprintf(upper, sizeof upper, "/proc/self/fd/%d/upper", layer);
	(void)snprintf(work, sizeof work, "/proc/self/fd/%d/work", layer);
	int tree = coop_view_fs("overlay", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (tree < 0)
		return tree;
	return coop_view_put(tree, coop_view_target(view, path));
}

int coop_view_layer(struct coop_view *view, const struct coop_plan_op *op)
{
	const char *path = view->text + op->path, *name = view->text + op->data;
	char bytes[24], nodes[24];
	const char *options[] = {"size", bytes, "nr_inodes", nodes, "mode", "0700", NULL};
	struct stat status;
	int lower = coop_view_source(view, path);
	int masks = op->source && lower >= 0 ? coop_view_source(view, view->text + op->source) : -1;

	if (lower < 0 || (op->source && masks < 0))
		return lower < 0 ? lower : masks;
	int r = coop_view_save(view, path);
	(void)snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)op->size);
	(void)snprintf(nodes, sizeof nodes, "%llu", (unsigned long long)op->inodes);
	int tree = r < 0 ? r : coop_view_fs("tmpfs", options, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
	if (tree < 0 || fstat(lower, &status) < 0)
		return tree < 0 ? tree : -errno;
	int layer = openat(tree, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	/* The layer stands on the folder itself, beneath what is made of both. */
	r = coop_view_put(tree, coop_view_make(view, path, true, 0755));
	if (r == 0 && (mkdirat(layer, "upper", status.st_mode & 0777) < 0 ||
		       mkdirat(layer, "work", 0700) < 0))
		r = -errno;
	int upper = r < 0 ? -1 : coop_look(layer, "upper");
	struct whiteout whiteout = {.upper = upper, .lower = lower, .at = -1, .below = -1};
	for (uint32_t i = 0; r == 0 && !op->source && i < op->count; i++) {
		r = hide(&whiteout, name);
		name += strlen(name) + 1;
	}
	leave(&whiteout);
	if (r == 0)
		r = stack(view, lower, masks, layer, path);
	for (int i = 0; i < 4; i++) {
		int fd = (const int[]){upper, layer, lower, masks}[i];
		if (fd >= 0)
			(void)close(fd);
	}
	return r;
}
