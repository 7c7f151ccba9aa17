/* Paths as clients give them, looked up in the sandbox that this process is in. */
#ifndef COOP_FILES_PATH_H
#define COOP_FILES_PATH_H

#include <stddef.h>
#include <sys/types.h>

#define FILES_PATH_MAX 4096u

/* Makes a path absolute (relative ones begin at `start`) and clean: no empty parts, no ".", no
 * "..", no slash at its end. Links stay as they are named, but for what stands before "..", which
 * means the real directory's parent. 0; -EINVAL: empty; -ENAMETOOLONG; -ENOENT and the like where a
 * directory before ".." is not there. */
int files_path_clean(const char *start, const char *path, char ret_path[FILES_PATH_MAX]);

/* Opens a clean path, close-on-exec, with `mode` if `flags` has O_CREAT. The root of this process
 * is the sandbox's, so nothing leads out of it; where the kernel lets us say so (the sandbox's
 * filter does not), it is said, and magic links of /proc are refused. An fd or -errno. */
int files_path_open(const char *path, int flags, mode_t mode);

/* Opens (O_PATH) the directory that a clean path lies in; *ret_name points to the last part within
 * `path`. -EBUSY: the path is the root itself. */
int files_path_open_parent(const char *path, const char **ret_name);

/* Makes a directory and those above it, as far as they are not there. 0; -EEXIST: the last part is
 * there and is no directory; -ENOTDIR: that holds for one before. */
int files_path_make(const char *path);

/* What -ENOTDIR from opening a directory means: -ENOTDIR if something else is there, -ENOENT if it
 * was about a part before the last. */
int files_path_not_directory(const char *path);

/* Where an open fd really is. 0, or -ENOENT: nowhere with a name. */
int files_path_real(int fd, char ret_path[FILES_PATH_MAX]);

/* Joins a clean directory and a name. 0 or -ENAMETOOLONG. */
int files_path_join(const char *directory, const char *name, char ret_path[FILES_PATH_MAX]);

#endif
