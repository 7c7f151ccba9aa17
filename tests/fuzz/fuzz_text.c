/* The text view: always valid UTF-8, never half a character, and the same text however the bytes
 * were cut into pieces. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"
#include "client/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static bool is_utf8(const char *text, size_t size)
{
	const uint8_t *bytes = (const uint8_t *)text;
	size_t at = 0;

	while (at < size) {
		size_t length = coop_utf8_char(bytes + at, size - at);
		if (!length)
			return false;
		at += length;
	}
	return true;
}

static struct coop_text view(const uint8_t *bytes, size_t size, bool more)
{
	struct coop_text text;

	int r = coop_text_view(bytes, size, more, &text);
	assert(r == 0);
	assert(is_utf8(text.text, text.size) && text.text[text.size] == 0);
	assert(text.consumed <= size && size - text.consumed <= (more ? 3 : 0));
	assert(text.utf8_valid == is_utf8((const char *)bytes, text.consumed));
	if (text.utf8_valid)
		assert(text.size == text.consumed &&
		       (!text.size || !memcmp(text.text, bytes, text.size)));
	return text;
}

/* Reads the bytes as a client would, `step` at a time, beginning each time where the view before
 * stopped. */
static void check_pieces(const uint8_t *bytes, size_t size, size_t step,
			 const struct coop_text *whole)
{
	size_t at = 0, written = 0;

	while (at < size) {
		size_t part = size - at < step ? size - at : step;
		struct coop_text text = view(bytes + at, part, at + part < size);
		assert(text.consumed > 0);
		assert(written + text.size <= whole->size);
		assert(!text.size || !memcmp(whole->text + written, text.text, text.size));
		at += text.consumed;
		written += text.size;
		coop_text_clear(&text);
	}
	assert(written == whole->size);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	if (size < 1)
		return 0;
	/* The first byte says how large the pieces are; fewer than four bytes may not get on. */
	size_t step = 4 + input[0] % 16;
	/* A copy of exactly that size, so that the sanitizer sees a read past it. */
	uint8_t *bytes = malloc(size > 1 ? size - 1 : 1);
	assert(bytes);
	memcpy(bytes, input + 1, size - 1);
	struct coop_text whole = view(bytes, size - 1, false);
	check_pieces(bytes, size - 1, step, &whole);
	coop_text_clear(&whole);
	free(bytes);
	return 0;
}
