/* The files of one process whose output is kept on disk: on the helper thread, or before the loop
 * runs and after it has ended. They are never opened through a link. */
#ifndef COOP_RECORDS_SPOOL_FILES_H
#define COOP_RECORDS_SPOOL_FILES_H

#include <stddef.h>
#include <stdint.h>

#define COOP_SPOOL_FILES 4 /* [0] everything in order of arrival, [1-3] by stream number */

/* Names that do not change; NULL for a file that there is none of. */
struct coop_spool_files {
	char *paths[COOP_SPOOL_FILES];
};

/* Names those of the streams whose bit is set in `streams`, and bit 0, in a folder with a name that
 * nobody guesses. 0 or -errno; touches no disk. */
int coop_spool_files_name(struct coop_spool_files *files, const char *folder, unsigned streams);
void coop_spool_files_clear(struct coop_spool_files *files);

/* Makes them, and their folder if it is not there. 0, or -errno with none left. */
int coop_spool_files_make(const struct coop_spool_files *files, const char *folder);
void coop_spool_files_remove(const struct coop_spool_files *files);

/* Adds bytes at the end. -ENOSPC also where there is just enough room left for what matters more:
 * the audit and the database are on that disk, too. 0 or -errno. */
int coop_spool_files_append(const char *path, const uint8_t *bytes, size_t size);

/* Reads at most `size` bytes. How many; 0 at a fault, too. */
size_t coop_spool_files_read(const char *path, uint64_t position, uint8_t *bytes, size_t size);

#endif
