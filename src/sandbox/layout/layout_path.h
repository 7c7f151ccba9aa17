/* Words about paths that a layout is made with. */
#ifndef COOP_SANDBOX_LAYOUT_PATH_H
#define COOP_SANDBOX_LAYOUT_PATH_H

#include <stdbool.h>
#include <stddef.h>

#include "interface/bounds.h"

struct coop_lookable;

/* Whether path is folder or lies below it, by their words. Both are absolute and normal. */
bool coop_path_below(const char *path, const char *folder);

/* Absolute, without doubled slashes, without . and .., without a slash at the end; shorter than
 * COOP_PATH_SIZE. */
bool coop_path_normal(const char *path);

/* "/a/b" for "/a" and "b"; -ENAMETOOLONG. `ret` has COOP_PATH_SIZE bytes, here and in the
 * following. */
int coop_path_join(const char *folder, const char *name, char *ret);

/* The folder that path lies in, "/" for "/". */
void coop_path_parent(const char *path, char *ret);

/* Cuts the first name off the rest of a path. False: there is none. */
bool coop_path_cut(char *rest, char *ret);

/* Goes on where a link leads: what it says comes before the rest, and where it begins anew `at`
 * is "/". Both have COOP_PATH_SIZE bytes. 0 or -errno. */
int coop_path_follow(const char *link, char *at, char *rest);

/* Orders paths so that what lies below a folder follows it directly. */
int coop_path_compare(const char *one, const char *other);

/* Where path leads: links are followed as far as it exists, the rest stays as it is. 0, or -errno
 * if that cannot be seen. */
int coop_path_resolve(const char *path, char *ret, bool *ret_exists);

/* "~/x" becomes "home/x", all else stays. -ENOENT: there is no home. */
int coop_path_expand(const char *path, const char *home, char *ret);

/* Calls `tell` with each path that fits the pattern: * ? [] within a name, ** for any folders.
 * At most `matches` are told, `entries` (counted down) looked at: -E2BIG beyond that. Links are
 * not followed where a name fits. With `seen` folders that may not be looked at are passed over. */
int coop_path_glob(const char *pattern, const struct coop_lookable *seen, size_t matches,
		   size_t *entries, void (*tell)(void *context, const char *path), void *context);

#endif
