/* Files that are given to a process which sees the host's files as they are: in a folder that only
 * the process's user can enter, gone with the process. A process with a view of its own needs none
 * of this. */
#ifndef COOP_KEEPER_PRIVATE_FILES_H
#define COOP_KEEPER_PRIVATE_FILES_H

#include "interface/err.h"

struct coop_injections;
struct coop_keeper;
struct coop_masks;
struct coop_process;

/* Names the process's folder, and the files in it, which are not made yet. Fixed paths are refused:
 * sandbox_unavailable. 0, or the error filled. */
int coop_private_files_name(struct coop_process *process, struct coop_injections *injections,
			    struct coop_err *err);

/* Writes them. 0, or the error filled. */
int coop_private_files_write(struct coop_process *process, const struct coop_injections *injections,
			     struct coop_err *err);

/* Nobody of the process is left. */
void coop_private_files_remove(struct coop_process *process);

/* Where names are hidden for all sandboxes that have a layer over the home, see
 * sandbox/layout/masks.h. NULL: nowhere. */
struct coop_masks *coop_private_files_masks(struct coop_keeper *keeper);

/* Removes what an earlier keeper left behind. Called once, at start. */
void coop_private_files_clean(struct coop_keeper *keeper);
/* Removes all there is, at the keeper's end. */
void coop_private_files_end(struct coop_keeper *keeper);

#endif
