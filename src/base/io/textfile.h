/* Whole files as text, also those of /proc, which tell no size. */
#ifndef COOP_BASE_TEXTFILE_H
#define COOP_BASE_TEXTFILE_H

#include "base/buf.h"

/* Appends all of the file and a NUL. 0; -EFBIG: it has more than `max` bytes, of which the first
 * stand there, with the NUL; or another -errno with nothing appended. */
int coop_textfile_read(const char *path, size_t max, struct coop_buf *ret);

#endif
