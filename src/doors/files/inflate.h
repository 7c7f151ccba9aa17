/* Gzip, unpacked piece by piece. Bytes in, bytes out: no I/O here. */
#ifndef COOP_FILES_INFLATE_H
#define COOP_FILES_INFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct files_inflate;

/* NULL without memory. */
struct files_inflate *files_inflate_new(void);
void files_inflate_free(struct files_inflate *inflate); /* NULL is fine */

/* Unpacks from [in, in+size) into `out` until one of them is used up; *ret_used and *ret_made say
 * how far it came. Several members one after the other are one text. 0, -EBADMSG: this is no gzip;
 * -ENOMEM. */
int files_inflate_run(struct files_inflate *inflate, const uint8_t *in, size_t size, uint8_t *out,
		      size_t room, size_t *ret_used, size_t *ret_made);

/* Whether all that was begun has come to its end. */
bool files_inflate_complete(const struct files_inflate *inflate);

#endif
