/* Bytes of a program as the text that they mean: escape sequences taken out, and what a line
 * overwrote of itself (progress bars) collapsed to what was seen last. Works on chunks, and knows
 * for every byte of the text where it came from. */
#ifndef COOP_VIEWS_PLAIN_H
#define COOP_VIEWS_PLAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

enum {
	/* A line is what a terminal would show of it: CR goes back to its start, backspace one
	 * character, and CSI C, D, G, J, K, P, X move and erase within it; a character is one
	 * column. Blanks at its end that overwrote something are left out. Without it CR LF becomes
	 * LF, and a lone CR or backspace stays. */
	COOP_PLAIN_COLLAPSE = 1,
};

/* What is held back is at most this, so that a reader who takes more at a time always gets on. A
 * command string that is longer (a picture) is swallowed nevertheless. */
#define COOP_PLAIN_HELD_MAX 4096u

struct coop_plain; /* opaque */

/* `offset` is the position in the stream of the first byte to come. NULL without memory. */
struct coop_plain *coop_plain_new(unsigned flags, uint64_t offset);
void coop_plain_free(struct coop_plain *plain); /* NULL is fine */

/* Takes bytes in. Valid UTF-8 is appended to the text: invalid bytes become U+FFFD, a character or
 * sequence that is not complete is held back. Taken out are control and escape sequences, command
 * strings (OSC, DCS, SOS, PM, APC) up to 64 KiB, and control characters but LF and TAB; a sequence
 * that is none of these, or an OSC that a line feed interrupts, ends where it stops being one. A
 * line of more than 64 KiB counts as several. 0 or -ENOMEM, now and then for every later call. */
int coop_plain_feed(struct coop_plain *plain, const void *bytes, size_t size);
/* Nothing follows: what was held back comes out (an incomplete escape sequence does not). */
int coop_plain_finish(struct coop_plain *plain);

/* The text so far (with COLLAPSE the present line is still subject to change, and is part of it).
 * Valid until the next feed. */
const char *coop_plain_text(const struct coop_plain *plain, size_t *ret_size);
/* Where in the stream byte `at` of the text came from; for the text's end: the position behind the
 * last byte that counts (what is held back lies behind it). */
uint64_t coop_plain_offset(const struct coop_plain *plain, size_t at);
/* Forgets the first `count` bytes of the text. If that takes some of the present line, the rest of
 * it stays as it is, and what follows begins a new one. */
void coop_plain_consume(struct coop_plain *plain, size_t count);
bool coop_plain_valid(const struct coop_plain *plain); /* all text was UTF-8 so far */

#endif
