/* What both halves understand by a plain path: the keeper's half makes them, the launcher's looks
 * again. */
#ifndef COOP_SANDBOX_PLAIN_PATH_H
#define COOP_SANDBOX_PLAIN_PATH_H

#include <stdbool.h>
#include <string.h>

#define COOP_PLAIN_PATH_SIZE 4096u /* with the NUL */

/* Absolute, not too long, without empty, . and .. parts, and without a slash at the end unless it
 * is the root. */
static inline bool coop_plain_path(const char *path)
{
	if (*path != '/' || strnlen(path, COOP_PLAIN_PATH_SIZE) == COOP_PLAIN_PATH_SIZE)
		return false;
	if (!path[1])
		return true;
	while (*path) {
		size_t size = strcspn(++path, "/");
		if (size == 0 || (size == 1 && *path == '.') ||
		    (size == 2 && !memcmp(path, "..", 2)))
			return false;
		path += size;
	}
	return true;
}

#endif
