/* The plain text of output: valid UTF-8, each byte from within the stream, the same however the
 * bytes were cut and in bounded room. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"
#include "client/views/plain.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define START 7u

static struct coop_plain *view(unsigned flags, const uint8_t *bytes, size_t size, size_t step)
{
	struct coop_plain *plain = coop_plain_new(flags, START);

	assert(plain);
	for (size_t at = 0; at < size; at += step) {
		size_t part = size - at < step ? size - at : step;
		int r = coop_plain_feed(plain, bytes + at, part);
		assert(r == 0);
		size_t text_size;
		(void)coop_plain_text(plain, &text_size);
		uint64_t end = coop_plain_offset(plain, text_size);
		assert(end <= START + at + part);
		assert(START + at + part - end <= COOP_PLAIN_HELD_MAX);
	}
	int r = coop_plain_finish(plain);
	assert(r == 0);
	return plain;
}

static void check(const struct coop_plain *plain, size_t size, bool collapsed)
{
	size_t text_size;
	const char *text = coop_plain_text(plain, &text_size);
	uint64_t before = 0;

	/* A blank line takes no more than a few hundred columns of few bytes. */
	assert(text_size <= size * 201);
	for (size_t at = 0; at < text_size;) {
		size_t length = coop_utf8_char((const uint8_t *)text + at, text_size - at);
		assert(length > 0);
		uint64_t offset = coop_plain_offset(plain, at);
		assert(offset >= START && offset < START + size);
		assert(collapsed || at == 0 || offset > before);
		before = offset;
		at += length;
	}
	assert(coop_plain_offset(plain, text_size) == START + size);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	if (size < 2)
		return 0;
	size_t count = size - 2, whole_size, part_size;
	unsigned flags = input[0] & COOP_PLAIN_COLLAPSE;
	uint8_t *bytes = malloc(count + 1);
	assert(bytes);
	memcpy(bytes, input + 2, count);
	struct coop_plain *whole = view(flags, bytes, count, count + 1);
	struct coop_plain *parts = view(flags, bytes, count, 1 + input[1] % 32);
	check(whole, count, flags);
	const char *text = coop_plain_text(whole, &whole_size);
	const char *other = coop_plain_text(parts, &part_size);
	assert(whole_size == part_size && !memcmp(text, other, whole_size));
	for (size_t at = 0; at < whole_size; at += 1 + at / 16)
		assert(coop_plain_offset(whole, at) == coop_plain_offset(parts, at));
	/* Consuming keeps what is left. */
	size_t gone = whole_size / 3;
	uint64_t offset = coop_plain_offset(parts, gone);
	coop_plain_consume(parts, gone);
	other = coop_plain_text(parts, &part_size);
	assert(part_size == whole_size - gone && !memcmp(text + gone, other, part_size));
	assert(coop_plain_offset(parts, 0) == offset);
	coop_plain_free(whole);
	coop_plain_free(parts);
	free(bytes);
	return 0;
}
