/* The small files and folders of control groups. For the cgroup modules only. */
#ifndef COOP_SANDBOX_CGROUP_FILE_H
#define COOP_SANDBOX_CGROUP_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* All of these: 0 (or what is said) or -errno. */

/* `folder`, a slash and `name` in `ret`; -ENAMETOOLONG. */
int coop_cgfile_join(const char *folder, const char *name, char *ret, size_t size);

int coop_cgfile_write(const char *folder, const char *name, const char *text);
int coop_cgfile_write_number(const char *folder, const char *name, int64_t number);

/* The text with a NUL behind it, cut at `size`. Its length. */
ssize_t coop_cgfile_read(const char *folder, const char *name, char *ret, size_t size);

/* The whole of a file of any size, to be freed; NULL with errno set. */
char *coop_cgfile_read_all(const char *path);

/* The number after `key` in a text of lines "key number"; without key the first number. 0 where
 * there is none. */
uint64_t coop_cgfile_number(const char *text, const char *key);

/* Makes it, which may already be there. */
int coop_cgfile_make(const char *path);

/* Calls `each` with every process in the folder, until it says other than 0; that is the result. */
int coop_cgfile_procs(const char *folder, int (*each)(pid_t pid, void *context), void *context);

/* Calls `each` with every folder below, not deeper. The same. */
int coop_cgfile_folders(const char *folder, int (*each)(const char *path, void *context),
			void *context);

/* Whether those that were killed are waited for: up to some seconds, which no loop has. */
enum coop_cgfile_patience { COOP_CGFILE_AT_ONCE, COOP_CGFILE_WAIT };

/* Kills all that is in the folder and below, lets go what is frozen, and removes the folders;
 * -EBUSY where the dying were not waited for, or do not die. `spare` names a folder right below
 * that is left alone, with which the folder itself stays; NULL: none. */
int coop_cgfile_remove_tree(const char *folder, const char *spare,
			    enum coop_cgfile_patience patience);

#endif
