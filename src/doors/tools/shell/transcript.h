/* What a terminal said, in bounded memory: its beginning and its latest part stay, and what lies
 * between is known by its place in the stream.
 *
 * There are two views of it. What is searched is all text, without escape sequences; text offsets
 * count its bytes from the beginning of the transcript, raw ones those of the stream. What is shown
 * is what a terminal would show: progress bars are collapsed to their last state. */
#ifndef COOP_TOOLS_TRANSCRIPT_H
#define COOP_TOOLS_TRANSCRIPT_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

struct coop_transcript;

/* A place in the text and in the stream. */
struct coop_mark {
	uint64_t text, raw;
};

/* `budget`: bytes of text that coop_transcript_show() gives at most. `raw` is the offset of the
 * first byte to come. NULL without memory. */
struct coop_transcript *coop_transcript_new(size_t budget, uint64_t raw);
void coop_transcript_free(struct coop_transcript *transcript); /* NULL is fine */

/* Takes bytes in. 0 or -ENOMEM. */
int coop_transcript_feed(struct coop_transcript *transcript, const void *bytes, size_t size);
/* What lies before `raw` and was not fed is left out; bytes go on there. */
int coop_transcript_skip(struct coop_transcript *transcript, uint64_t raw);
/* Nothing follows: what was held back as incomplete comes out. */
int coop_transcript_finish(struct coop_transcript *transcript);

/* Where the text ends now. What is held back lies behind it. */
struct coop_mark coop_transcript_end(const struct coop_transcript *transcript);
/* The place right behind the byte of the text before `text`, which must not be forgotten yet. */
struct coop_mark coop_transcript_mark(const struct coop_transcript *transcript, uint64_t text);
/* The text from `from` on, which may be later than asked where that is forgotten. Valid until the
 * transcript changes. */
const char *coop_transcript_text(const struct coop_transcript *transcript, uint64_t *from,
				 size_t *ret_size);
/* Forgets what is old where there is much. At least COOP_TRANSCRIPT_KEEP bytes of the text stay. */
int coop_transcript_trim(struct coop_transcript *transcript);
#define COOP_TRANSCRIPT_KEEP (1u << 20)

/* What is shown of all before the raw offset `end`, and {"from", "to"} (raw) of what is left out,
 * or NULL if nothing is. Both are the caller's. */
int coop_transcript_show(const struct coop_transcript *transcript, uint64_t end, json_t **ret_text,
			 json_t **ret_omitted);

#endif
