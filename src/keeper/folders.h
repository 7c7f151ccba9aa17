/* Frees folders that were removed: what takes its time on disk is the helper thread's. */
#ifndef COOP_KEEPER_FOLDERS_H
#define COOP_KEEPER_FOLDERS_H

struct coop_keeper;

/* Those of the placeholders that have gone. */
void coop_folders_free(struct coop_keeper *keeper);

#endif
