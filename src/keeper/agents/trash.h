/* Folders that are to go with all that is in them: moved out of the way at once, then deleted by
 * the helper thread, a slice at a time, so that others' work for the disk comes in between. Links
 * are deleted, never followed; how deep it goes does not matter. What cannot be deleted, or is left
 * when the keeper leaves, is the next keeper's (agent_folder.h). */
#ifndef COOP_KEEPER_TRASH_H
#define COOP_KEEPER_TRASH_H

#include <stdbool.h>

struct coop_keeper;
struct coop_trash;

/* NULL without memory. */
struct coop_trash *coop_trash_new(void);
void coop_trash_free(struct coop_trash *trash); /* NULL is fine */

/* One more folder, by its absolute path. 0 or -ENOMEM. */
int coop_trash_add(struct coop_trash *trash, const char *path);

/* Moves them out of the way, and calls `moved` (loop's thread) when that is done. Needs no
 * memory. */
void coop_trash_move(struct coop_keeper *keeper, struct coop_trash *trash,
		     void (*moved)(struct coop_trash *trash, void *user), void *user);

/* Deletes them, moved or not, and frees it. */
void coop_trash_empty(struct coop_keeper *keeper, struct coop_trash *trash);

#endif
