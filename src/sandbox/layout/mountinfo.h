/* What is mounted where, as /proc/self/mountinfo says. */
#ifndef COOP_SANDBOX_MOUNTINFO_H
#define COOP_SANDBOX_MOUNTINFO_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define COOP_MOUNTINFO_MAX (4u << 20) /* bytes of the file that are read */

struct coop_mount {
	uint64_t dev;      /* major << 32 | minor */
	const char *root;  /* which part of the file system */
	const char *point; /* where it is seen */
	const char *type;  /* of the file system, as in "ext4"; "": not told */
};

/* Zero-initialise. */
struct coop_mountinfo {
	struct coop_buf text;
	struct coop_mount *mounts;
	size_t count;
};

/* 0 or -errno. */
int coop_mountinfo_read(struct coop_mountinfo *ret);

/* Parses what was read: `text` as the file has it. Lines that are none are passed over. 0 or
 * -ENOMEM. */
int coop_mountinfo_parse(struct coop_mountinfo *ret, const char *text, size_t size);
void coop_mountinfo_clear(struct coop_mountinfo *info);

/* The mount that path, canonical, is seen through; NULL: none is known. */
const struct coop_mount *coop_mountinfo_find(const struct coop_mountinfo *info, const char *path);

/* Calls `tell` with every other path that shows the same file or folder, or (for a folder) a part
 * of it. Paths of other mounts that are themselves covered by a later mount are told, too. */
void coop_mountinfo_aliases(const struct coop_mountinfo *info, const char *path,
			    void (*tell)(void *context, const char *alias), void *context);

#endif
