/* The lengths that frames announce: the same verdict as a plain reader's, at the same byte, however
 * the bytes are cut. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "doors/http/net/ws.h"
#include "doors/http/net/ws_sizes.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

#define LIMIT 4000u

/* Where the first head that announces too much ends; 0 if there is none. */
static size_t plain_verdict(const uint8_t *input, size_t size, unsigned *ret_code)
{
	for (size_t at = 0; size - at >= 2;) {
		unsigned length = input[at + 1] & 0x7fu, first = input[at];
		unsigned more = length < 126 ? 0 : length == 126 ? 2 : 8;
		size_t head = 2 + more + (input[at + 1] & 0x80u ? 4 : 0);
		uint64_t payload = more ? 0 : length;
		if (size - at < head)
			return 0;
		for (unsigned i = 0; i < more; i++)
			payload = payload << 8 | input[at + 2 + i];
		at += head;
		if ((first & 8u && payload > 125) || ((first & 15u) == 8u && payload == 1)) {
			*ret_code = COOP_WS_PROTOCOL;
			return at;
		}
		if (payload > LIMIT) {
			*ret_code = payload >> 63 ? COOP_WS_PROTOCOL : COOP_WS_TOO_LARGE;
			return at;
		}
		if (payload > size - at)
			return 0;
		at += payload;
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct coop_ws_sizes sizes = {0};
	unsigned expected = 0, code = 0;
	size_t end = plain_verdict(input, size, &expected);

	for (size_t at = 0; at < size && !code;) {
		size_t part = 1 + input[at] % 61u;
		part = part < size - at ? part : size - at;
		uint8_t *own = malloc(part);
		assert(own);
		memcpy(own, input + at, part);
		code = coop_ws_sizes_look(&sizes, own, part, LIMIT);
		free(own);
		at += part;
		assert((code != 0) == (end != 0 && end <= at));
	}
	assert(code == expected);
	return 0;
}
