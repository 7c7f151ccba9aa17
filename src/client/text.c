#include "client/text.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/utf8.h"

static const char replacement[] = "\xef\xbf\xbd"; /* U+FFFD */
#define REPLACEMENT_SIZE (sizeof replacement - 1)

/* Bytes at the start that are plain ASCII, eight at a time: most output is nothing else. */
static size_t skip_ascii(const uint8_t *bytes, size_t size)
{
	size_t at = 0;
	uint64_t eight;

	while (size - at >= sizeof eight) {
		memcpy(&eight, bytes + at, sizeof eight);
		if (eight & UINT64_C(0x8080808080808080))
			break;
		at += sizeof eight;
	}
	while (at < size && bytes[at] < 0x80)
		at++;
	return at;
}

/* Length of the valid text at the start. */
static size_t skip_valid(const uint8_t *bytes, size_t size)
{
	size_t at = 0;

	while (at < size) {
		at += skip_ascii(bytes + at, size - at);
		size_t length = at < size ? coop_utf8_char(bytes + at, size - at) : 0;
		if (!length)
			break;
		at += length;
	}
	return at;
}

/* Bytes that one U+FFFD stands for: as many as could have begun a character, at least one. */
static size_t bad_length(const uint8_t *bytes, size_t size)
{
	for (size_t length = size < 3 ? size : 3; length > 1; length--) {
		if (coop_utf8_unfinished(bytes, length) == length)
			return length;
	}
	return 1;
}

/* Walks over the bytes; writes the text if `to` is not NULL. Returns the text's size and counts
 * the replacements. */
static size_t render(const uint8_t *bytes, size_t size, char *to, size_t *ret_replaced)
{
	size_t at = 0, written = 0, replaced = 0;

	while (at < size) {
		size_t valid = skip_valid(bytes + at, size - at);
		if (to && valid)
			memcpy(to + written, bytes + at, valid);
		at += valid;
		written += valid;
		if (at == size)
			break;
		if (to)
			memcpy(to + written, replacement, REPLACEMENT_SIZE);
		at += bad_length(bytes + at, size - at);
		written += REPLACEMENT_SIZE;
		replaced++;
	}
	*ret_replaced = replaced;
	return written;
}

int coop_text_view(const void *bytes, size_t size, bool more, struct coop_text *ret)
{
	size_t consumed = more && size ? size - coop_utf8_unfinished(bytes, size) : size;
	size_t replaced;
	size_t text_size = render(bytes, consumed, NULL, &replaced);
	char *text = coop_mem_alloc(text_size + 1);

	if (!text)
		return -ENOMEM;
	(void)render(bytes, consumed, text, &replaced);
	text[text_size] = 0;
	*ret = (struct coop_text){
		.text = text,
		.size = text_size,
		.consumed = consumed,
		.utf8_valid = replaced == 0,
	};
	return 0;
}

void coop_text_clear(struct coop_text *text)
{
	free(text->text);
	*text = (struct coop_text){0};
}
