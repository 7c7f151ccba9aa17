/* Placeholders on disk. Where a protected or denied path was missing, something must stand there
 * for as long as a process runs that may not make it: nothing can be mounted on a name that is not
 * there. A placeholder is an empty folder, or a socket that nobody listens on: version control and
 * most programs pass over it, and anything can be mounted over it. Where a program insists on
 * reading the file, it is a plain one whose content changes nothing.
 *
 * Processes share placeholders; the last one takes them away. A list names those that stand, so
 * that a keeper that was killed leaves nothing behind for good. It is written in memory, from where
 * it is saved to the state folder behind the loop's back, or by the guard of a dead keeper. */
#ifndef COOP_SANDBOX_GHOSTS_H
#define COOP_SANDBOX_GHOSTS_H

#include <stdbool.h>
#include <stddef.h>

struct coop_ghost {
	char *path;          /* canonical */
	const char *content; /* of a plain file; static. NULL: a socket */
	bool folder;
	bool never_folder; /* where there can be no socket it is a plain file without content */
	bool held;         /* set by coop_ghosts_take: it stands, and is counted */
};

struct coop_ghosts;
struct coop_ghost_parent;

#define COOP_GHOSTS_REMOVED_MAX 32u

/* NULL without memory. `state` is the folder for the list, `memory` a file in memory that stays the
 * caller's; NULL: none is kept. What an earlier keeper left in one of them is removed. */
struct coop_ghosts *coop_ghosts_new(const char *state, int memory);

/* Whether the list has changed since the last time that it was asked. Loop's thread. */
bool coop_ghosts_changed(struct coop_ghosts *ghosts);

/* Saves the list in memory to the state folder, perhaps one that is half written: each line of it
 * is checked before anything is removed by it. Any thread, any process. */
void coop_ghosts_save(const char *state, int memory);

/* Removes all that stand, but for those that are left. */
void coop_ghosts_free(struct coop_ghosts *ghosts);
/* Those of which `leave` says so stay, and stay in the list, when all the others are removed. */
void coop_ghosts_leave(struct coop_ghosts *ghosts, bool (*leave)(void *user, const char *path),
		       void *user);

/* Makes those that are missing and counts one user more for each of ours; marks what is held. One
 * that cannot be made where nobody inside could make it either, or whose name somebody else took
 * meanwhile, is passed over. 0 or -errno, then none is held: -EACCES also of a folder that is
 * closed now, but that its owner could open from inside. */
int coop_ghosts_take(struct coop_ghosts *ghosts, struct coop_ghost *list, size_t count);

/* Counts one user less for those held; removes those without any, if they are still as they were
 * made. */
void coop_ghosts_drop(struct coop_ghosts *ghosts, struct coop_ghost *list, size_t count);

/* Descriptors of folders that were removed, from now on the caller's to close: their names are
 * gone, but a file system may take its time to free them, and does so then. How many. */
size_t coop_ghosts_removed(struct coop_ghosts *ghosts, int ret[COOP_GHOSTS_REMOVED_MAX]);

/* Whether what is at path now is a placeholder of ours, still as it was made. `near` has the
 * folder of the last one that was asked for (ghosts_disk.h). */
bool coop_ghosts_stands(const struct coop_ghosts *ghosts, struct coop_ghost_parent *near,
			const char *path);

size_t coop_ghosts_count(const struct coop_ghosts *ghosts);

void coop_ghosts_free_list(struct coop_ghost *list, size_t count);

#endif
