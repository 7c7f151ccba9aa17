/* Paths as words: made absolute and plain without a look at the file system. */
#ifndef COOP_POLICY_PATHS_H
#define COOP_POLICY_PATHS_H

#include <stdbool.h>
#include <stddef.h>

#define COOP_PATH_MAX 4096u

struct coop_path {
	char text[COOP_PATH_MAX];
};

/* Writes `text` from `cwd`, without `.`, `..` and doubled slashes. False where it cannot be known:
 * relative to an unknown cwd (NULL), or too long. */
bool coop_path_make(struct coop_path *ret, const char *cwd, const char *text);

/* Whether `path` is `root` or lies in it; both plain. */
bool coop_path_within(const char *path, const char *root);

/* The part after the last slash. */
const char *coop_path_name(const char *path);

/* /dev/sda and its like, what holds a file system; and /proc/sysrq-trigger, which takes the machine
 * down: not to be written to. */
bool coop_path_disk(const char *path);

/* Directly under /: /etc, /usr, …: what the system consists of. */
bool coop_path_system(const char *path);

#endif
