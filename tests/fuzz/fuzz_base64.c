/* Base64: whatever text comes in, the decoder stays within its room and takes only what the encoder
 * writes; every way of encoding writes the same, and it is read back. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/base64.h"
#include "base/text/base64_encoders.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

/* Memory of exactly that size, so that the sanitizer sees what goes past it. */
static void *exactly(size_t size)
{
	void *place = malloc(size ? size : 1);

	assert(place);
	return place;
}

static void check_decode(const uint8_t *input, size_t size)
{
	uint8_t *bytes = exactly(coop_base64_room(size));
	size_t count = SIZE_MAX;
	int r = coop_base64_decode((const char *)input, size, bytes, &count);

	if (r == 0) {
		assert(count <= coop_base64_room(size) && coop_base64_length(count) == size);
		char *again = exactly(size);
		coop_base64_encode(bytes, count, again);
		assert(memcmp(again, input, size) == 0);
		free(again);
	} else {
		assert(r == -EINVAL && count == SIZE_MAX);
	}
	free(bytes);
}

static void check_encode(const uint8_t *input, size_t size)
{
	size_t length = coop_base64_length(size), count;
	char *first = exactly(length), *text = exactly(length);
	uint8_t *back = exactly(coop_base64_room(length));

	coop_base64_encode(input, size, first);
	for (const struct coop_base64_encoder *e = coop_base64_encoders; e->name; e++) {
		if (!e->usable())
			continue;
		coop_base64_encode_with(e, input, size, text);
		assert(memcmp(first, text, length) == 0);
	}
	assert(coop_base64_decode(first, length, back, &count) == 0);
	assert(count == size && memcmp(back, input, size) == 0);
	free(first);
	free(text);
	free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	check_decode(input, size);
	check_encode(input, size);
	return 0;
}
