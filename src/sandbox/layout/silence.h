/* Which paths can be looked up without waiting for anybody. The loop serves everybody: a path whose
 * file system has gone silent (a network mount without its server, a FUSE mount whose program
 * hangs) would stop it for as long as that lasts, and no call tells so beforehand. So a path is
 * resolved here, name by name, from what the kernel has in its caches, and no step is made into a
 * mount of a kind that can be silent, whatever is in the caches of that: it may have died since. */
#ifndef COOP_SANDBOX_SILENCE_H
#define COOP_SANDBOX_SILENCE_H

#include <stdbool.h>
#include <stddef.h>

#include "sandbox/layout/layout_path.h"
#include "sandbox/layout/mountinfo.h"

/* Zero-initialise. */
struct coop_silence {
	int fd; /* tells of changes of the mounts */
	bool watched;
	bool known; /* the table is as it was read, and has not changed since the last look */
	struct coop_mountinfo table;
	const char **points; /* where those are mounted that can be silent; they lie in the table */
	size_t count;
	unsigned generation; /* of the table */
};

/* Before the first question of a turn: mounts that came or went are learnt of. */
void coop_silence_refresh(struct coop_silence *silence);
void coop_silence_clear(struct coop_silence *silence);

/* Where an absolute path leads. 0 with `ret` canonical; -EREMOTE: only somebody who may be silent
 * could say; -EAGAIN: the kernel would have to look, on a file system of this host; else -errno as
 * it has it at hand. */
int coop_silence_resolve(const struct coop_silence *silence, const char *path,
			 char ret[COOP_PATH_SIZE]);

/* The same of a path of which it does not matter where it leads: mostly one call says all. */
int coop_silence_ask(const struct coop_silence *silence, const char *path);

/* Whether a canonical path lies on a mount that can be silent. */
bool coop_silence_holds(const struct coop_silence *silence, const char *path);

/* The next mount below the folder, canonical, that can be silent, from number *at on, which moves
 * behind it; NULL: there is none. */
const char *coop_silence_below(const struct coop_silence *silence, const char *folder, size_t *at);

#endif
