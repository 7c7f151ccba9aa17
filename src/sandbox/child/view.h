/* The view of the files under construction: what a plan's operations work on. In the child: no
 * heap, only system calls. Whatever fails returns -errno and leaves the rest to the end of the
 * process. */
#ifndef COOP_SANDBOX_VIEW_H
#define COOP_SANDBOX_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sandbox/plan/plan.h"

#define COOP_VIEW_BENEATH_MAX 16
#define COOP_VIEW_WAYS_MAX 32

struct coop_view {
	const char *text;
	const int *extra_fds;
	/* for the user namespace, set with its /proc; NULL: none */
	const struct coop_user_counts *counts;
	int terminal; /* fd of the terminal; -1: none */
	int root;     /* in which targets lie */
	int old_root; /* in which sources lie */
	int makeable; /* the root once more, writable, to make mount points in; -1: `root` itself */
	/* a small file system with an empty "file", "absent" and "folder", and "files" to mount
	 * on; -1: not there yet */
	int covers;
	int files; /* what was injected; -1: nothing yet */
	unsigned file_count;
	bool empty_root;
	/* The folder that the last name lay in which is only not to be made; -1: none. Most of
	 * those lie side by side. */
	int beside;
	const char *beside_path; /* of that name */
	size_t beside_size;      /* of the folder's path in it */
	/* Folders that were covered by something private, and still are sources. */
	struct {
		const char *path;
		int fd;
	} beneath[COOP_VIEW_BENEATH_MAX];
	unsigned beneath_count;
	/* Folders closed to this identity that were covered by ways down: the first bytes of a
	 * path, and the cover once more, writable. */
	struct {
		const char *path;
		size_t size;
		int fd;
	} ways[COOP_VIEW_WAYS_MAX];
	unsigned way_count;
};

/* Carries out the operations. 0 or -errno; *ret_failed is the number of the one that failed. */
int coop_view_build(struct coop_view *view, const struct coop_plan_op *ops, uint32_t count,
		    uint32_t *ret_failed);
void coop_view_init(struct coop_view *view);

/* The following serve the operations. Fds that they return are the caller's. */

/* A source: what was at path before anything private covered it. An fd or -errno. */
int coop_view_source(const struct coop_view *view, const char *path);
/* A target that exists. */
int coop_view_target(const struct coop_view *view, const char *path);
/* The same; what is missing is made: a folder, or an empty file. Works where the view is
 * private. */
int coop_view_make(const struct coop_view *view, const char *path, bool folder, uint32_t mode);
/* Notes that path is about to be covered. */
int coop_view_save(struct coop_view *view, const char *path);

/* A file system of that kind, detached: pairs of keys and values, NULL-ended; a NULL value is a
 * flag. An fd or -errno. */
int coop_view_fs(const char *kind, const char *const *options, uint64_t attributes);
/* Puts `tree` there, and closes it. */
int coop_view_put(int tree, int target);

/* Shows the terminal as /dev/console, where there is a DEV. */
int coop_view_console(struct coop_view *view);

int coop_view_tmpfs(struct coop_view *view, const struct coop_plan_op *op);
int coop_view_proc(struct coop_view *view, const struct coop_plan_op *op);
int coop_view_dev(struct coop_view *view, const struct coop_plan_op *op);
int coop_view_layer(struct coop_view *view, const struct coop_plan_op *op);
int coop_view_cover(struct coop_view *view, const struct coop_plan_op *op);
int coop_view_file(struct coop_view *view, const struct coop_plan_op *op);

#endif
