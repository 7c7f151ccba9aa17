/* Text that knows for each of its bytes where in the stream it came from. A part of plain.c. */
#ifndef COOP_VIEWS_RUNS_H
#define COOP_VIEWS_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Zero-initialise it. */
struct coop_placed_text {
	struct coop_buf bytes;
	/* of struct origin: one where the text does not go on in step with the stream */
	struct coop_buf origins;
	uint64_t forgotten; /* bytes of text consumed so far */
};

void coop_placed_clear(struct coop_placed_text *runs);

static inline size_t coop_placed_size(const struct coop_placed_text *runs)
{
	return coop_buf_size(&runs->bytes);
}

/* Appends. The bytes came from `offset` and what follows it, or, if `flat`, all of them from
 * `offset`. 0, or -ENOMEM with nothing changed. */
int coop_placed_append(struct coop_placed_text *runs, const void *bytes, size_t size,
		       uint64_t offset, bool flat);
/* Cuts the end off, so that `size` bytes are left. */
void coop_placed_cut(struct coop_placed_text *runs, size_t size);
/* Drops `count` bytes at the front. */
void coop_placed_consume(struct coop_placed_text *runs, size_t count);
/* Where byte `at`, which must exist, came from. */
uint64_t coop_placed_offset(const struct coop_placed_text *runs, size_t at);

#endif
