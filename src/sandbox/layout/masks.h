/* Names that are hidden in a home, on disk: a folder with a whiteout for each, which overlays of
 * all sandboxes have between their own layer and the home. Made once for the same names; to make
 * them in each sandbox takes longer than all else that is done for its home. */
#ifndef COOP_SANDBOX_MASKS_H
#define COOP_SANDBOX_MASKS_H

#include <stddef.h>

struct coop_masks;

/* `folder` is there, is empty, and nobody else writes to it; it stays for as long as a sandbox
 * does. NULL without memory. */
struct coop_masks *coop_masks_new(const char *folder);
/* What is on disk stays. */
void coop_masks_free(struct coop_masks *masks);

/* The folder for these names, `size` bytes of them, each relative to home and with its NUL. Good
 * for as long as the masks are. NULL: there is none, and the sandbox has to hide them itself. */
const char *coop_masks_find(struct coop_masks *masks, const char *home, const char *names,
			    size_t size);

#endif
