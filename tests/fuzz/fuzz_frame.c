/* The frame parser: whatever comes in, it stays within the bytes it was given, finds the same
 * frames in pieces as in one run, and what it takes apart can be put together again. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "interface/frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

/* The header that would announce `frame` is the header that did. */
static void check_round_trip(const struct coop_frame *frame, const uint8_t *bytes, size_t used)
{
	uint8_t header[COOP_FRAME_DATA_HEADER];
	size_t header_size = COOP_FRAME_HEADER;

	if (frame->kind == COOP_FRAME_DATA) {
		header_size = COOP_FRAME_DATA_HEADER;
		coop_frame_put_data(header, frame);
		assert(frame->size <= COOP_FRAME_DATA_MAX);
	} else {
		coop_frame_put_json(header, frame->size);
		assert(frame->size <= COOP_FRAME_JSON_MAX);
	}
	assert(used == header_size + frame->size);
	assert(frame->bytes == bytes + header_size);
	assert(memcmp(header, bytes, header_size) == 0);
}

/* Every beginning of a frame asks for more, and of a fault either asks for more or is that fault.
 * The beginnings are copies of exactly their size, so that the sanitizer sees a read past them. */
static void check_beginnings(const uint8_t *bytes, size_t used, int expected)
{
	size_t limit = used < 64 ? used : 64;

	for (size_t size = 0; size < limit; size++) {
		struct coop_frame frame;
		size_t part_used;
		const char *why = NULL;
		uint8_t *part = malloc(size ? size : 1);
		assert(part);
		memcpy(part, bytes, size);
		int r = coop_frame_parse(part, size, &frame, &part_used, &why);
		free(part);
		assert(r == 0 || (expected < 0 && r == expected && why));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	size_t at = 0;

	for (;;) {
		struct coop_frame frame;
		size_t used = 0;
		const char *why = NULL;
		int r = coop_frame_parse(input + at, size - at, &frame, &used, &why);

		check_beginnings(input + at, r > 0 ? used : size - at, r);
		if (r <= 0) {
			assert(r == 0 || r == -EPROTO || r == -EMSGSIZE);
			assert((r < 0) == (why != NULL));
			return 0;
		}
		assert(r == 1 && used > 0 && used <= size - at);
		check_round_trip(&frame, input + at, used);
		at += used;
	}
}
