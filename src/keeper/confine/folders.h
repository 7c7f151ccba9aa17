/* The end of placeholders: what takes its time on disk is not the loop's. */
#ifndef COOP_KEEPER_FOLDERS_H
#define COOP_KEEPER_FOLDERS_H

#include <stddef.h>

struct coop_ghost;
struct coop_keeper;

/* Placeholders are not needed any more by one of those who held them. Takes the list over. On a
 * file system that can be silent that comes when it has answered; where nobody can ask, they are
 * left to the keeper's end. */
void coop_folders_drop(struct coop_keeper *keeper, struct coop_ghost *list, size_t count);

/* Frees the folders of those that have gone, on the helper thread. */
void coop_folders_free(struct coop_keeper *keeper);

#endif
