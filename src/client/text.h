/* Text views of a process's bytes, for doors: valid UTF-8 out of anything, without ever
 * splitting a character. */
#ifndef COOP_CLIENT_TEXT_H
#define COOP_CLIENT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

struct coop_text {
	char *text;  /* valid UTF-8; a NUL stands behind it, and bytes of value 0 may be inside */
	size_t size; /* of the text, without that NUL */
	size_t consumed; /* of the original bytes: `next` is the cursor plus this */
	bool utf8_valid; /* nothing had to be replaced */
};

/* Renders bytes as text. What can not be UTF-8 becomes U+FFFD, one for each maximal beginning of
 * a character, and utf8_valid is false. If `more` may follow (the stream has not ended here), a
 * beginning of a character at the end is held back: `consumed` stops before it. A reader that
 * asks for at least 4 bytes at a time therefore always gets on. 0, with *ret the caller's, to be
 * ended with coop_text_clear(); or -ENOMEM. */
int coop_text_view(const void *bytes, size_t size, bool more, struct coop_text *ret);

void coop_text_clear(struct coop_text *text);

#endif
