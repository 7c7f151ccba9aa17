/* Writes JSON text straight into a buffer: records are many and large, and trees of nodes would
 * cost more than the rest of a `list`. Requests are parsed with jansson.
 *
 * Every function takes the member's name, or NULL inside an array; a name is escaped like any other
 * text. Failure to get memory is remembered; look once, at the end. */
#ifndef COOP_BASE_JSONW_H
#define COOP_BASE_JSONW_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct coop_jsonw {
	struct coop_buf *out;
	bool comma;  /* something stands before, in this object or array */
	bool failed; /* no memory: the text is worthless */
};

void coop_jsonw_begin(struct coop_jsonw *w, const char *name); /* { */
void coop_jsonw_end(struct coop_jsonw *w);
void coop_jsonw_array(struct coop_jsonw *w, const char *name); /* [ */
void coop_jsonw_array_end(struct coop_jsonw *w);

/* Bytes that are not UTF-8 become U+FFFD. NULL text is null. */
void coop_jsonw_string(struct coop_jsonw *w, const char *name, const char *text);
void coop_jsonw_int(struct coop_jsonw *w, const char *name, int64_t value);
void coop_jsonw_uint(struct coop_jsonw *w, const char *name, uint64_t value);
void coop_jsonw_bool(struct coop_jsonw *w, const char *name, bool value);
void coop_jsonw_null(struct coop_jsonw *w, const char *name);
/* One decimal. */
void coop_jsonw_fixed(struct coop_jsonw *w, const char *name, double value);
/* `json` is JSON text of its own. */
void coop_jsonw_raw(struct coop_jsonw *w, const char *name, const char *json);
/* As coop_jsonw_string(), of `size` bytes, among which may be a NUL. */
void coop_jsonw_text(struct coop_jsonw *w, const char *name, const char *text, size_t size);
/* A tree as it is; several times as fast as json_dumps() where strings are long. */
void coop_jsonw_value(struct coop_jsonw *w, const char *name, const json_t *value);
/* A moment as RFC 3339 text; 0 is null. */
void coop_jsonw_time(struct coop_jsonw *w, const char *name, int64_t wall_ms);

#endif
