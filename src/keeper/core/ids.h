/* The counter behind ids: never reused, not even after a restart. Kept in a file, reserved in
 * blocks. */
#ifndef COOP_KEEPER_IDS_H
#define COOP_KEEPER_IDS_H

#include <stdint.h>

#define COOP_IDS_BLOCK 4096u

/* Reads the counter from `dir` and reserves the next block there (write, fsync, rename). A missing
 * file counts as 1. Returns 0 with the first free number, or -errno (-EBADMSG: the file is damaged;
 * it is not overwritten). */
int coop_ids_open(const char *dir, uint64_t *ret_next);

/* Reserves up to `limit`. Blocks on the disk: for the helper thread. 0 or -errno. */
int coop_ids_reserve(const char *dir, uint64_t limit);

#endif
