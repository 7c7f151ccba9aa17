/* What a process has printed, as numbers: its bytes, its lines, and a SHA-256 over both streams in
 * the order of arrival. Counted as the bytes come in, so that it covers what no ring holds any
 * more. Only for processes whose spawn asked for it. */
#ifndef COOP_KEEPER_DIGEST_H
#define COOP_KEEPER_DIGEST_H

#include <jansson.h>
#include <stddef.h>
#include <sys/uio.h>

#include "base/json/jsonw.h"

struct coop_digest;
struct coop_output;
struct coop_outlet;

/* NULL without memory. */
struct coop_digest *coop_digest_new(void);
/* The final one of an earlier keeper's process, as coop_digest_write has written it. NULL without
 * memory. */
struct coop_digest *coop_digest_restore(const json_t *json);
void coop_digest_free(struct coop_digest *digest); /* NULL is fine */

/* The first `size` bytes of `places` have been read from a stream of a process that has a digest.
 * What comes after the end has been told does not count, but for what the process itself had left
 * in the pipe. */
void coop_digest_feed(const struct coop_outlet *stream, const struct iovec *places, size_t size);

/* It may be final now: then it holds no more than its numbers. */
void coop_digest_settle(struct coop_output *output);

/* Null before the end has been told, and where nobody asked for it. */
void coop_digest_write(const struct coop_output *output, struct coop_jsonw *w, const char *name);

#endif
