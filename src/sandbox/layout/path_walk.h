/* Resolves a name as the kernel does, and looks only where it may: what lies elsewhere is
 * neither opened nor asked about, so that no answer can tell of it. */
#ifndef COOP_SANDBOX_PATH_WALK_H
#define COOP_SANDBOX_PATH_WALK_H

#include <stdbool.h>

#include "sandbox/layout/layout_path.h"

/* On whose behalf is looked. Paths are absolute, and without links but for their last name. */
struct coop_lookable {
	/* What is there may be told: it can be read by whoever asks. */
	bool (*may)(const struct coop_lookable *seen, const char *path);
	/* Something that may be looked at lies below: that it is there is known anyway. */
	bool (*leads)(const struct coop_lookable *seen, const char *path);
	/* Whether a word of a policy's lists is the owner's own, who may have any place looked
	 * at. */
	bool (*owners)(const struct coop_lookable *seen, const char *word);
};

/* 0: it is there, and `ret` is what it resolves to. -EXDEV: it leads out of what may be looked
 * at, be it only on the way; `ret` is where to, by its words alone, and "" if those go back up
 * there. Else -errno of a place that may be looked at, and `ret` is that with what follows, or
 * "". Links of folders that only lead there are followed: the host's own names for a root are
 * good for it. */
int coop_path_walk(const struct coop_lookable *seen, const char *path, char ret[COOP_PATH_SIZE]);

/* Whether the folder that a pattern begins in must not be looked at. */
bool coop_path_begins_outside(const struct coop_lookable *seen, const char *pattern);

/* Opens what a name resolves to, as O_PATH with `flags`: the descriptor, -EXDEV where it leads
 * out of what may be looked at (`ret` as of coop_path_walk), or -errno. Without `seen` whatever
 * is there is opened, and `ret` stays empty. */
int coop_path_open(const struct coop_lookable *seen, const char *path, int flags,
		   char ret[COOP_PATH_SIZE]);
/* The same of a place without links: one that came since it was walked to is refused with
 * -EXDEV. */
int coop_path_open_plain(const char *path, int flags);

#endif
