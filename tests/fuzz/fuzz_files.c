/* Frames of coop-files and gzip: both stay inside their input, frames lie one behind the other, and
 * how gzip is cut into pieces changes nothing. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "doors/files/frame.h"
#include "doors/files/inflate.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static void frames(const uint8_t *input, size_t size)
{
	struct coop_files_frame frame;
	uint8_t header[COOP_FILES_FRAME_HEADER];
	size_t used;

	while (coop_files_frame_parse(input, size, &frame, &used) > 0) {
		assert(used <= size && used >= COOP_FILES_FRAME_HEADER);
		assert((const uint8_t *)frame.json == input + COOP_FILES_FRAME_HEADER);
		assert(frame.data == (const uint8_t *)frame.json + frame.json_size);
		assert(frame.data + frame.size == input + used);
		coop_files_frame_put(header, frame.id, frame.json_size, frame.size);
		assert(memcmp(header, input, sizeof header) == 0);
		input += used;
		size -= used;
	}
}

#define OUT_MAX (1u << 16)

/* What comes out, up to OUT_MAX bytes; *ret_size is how much, the result 0 or why it stopped. */
static int unpack(const uint8_t *input, size_t size, size_t step, uint8_t *out, size_t *ret_size)
{
	struct files_inflate *inflate = files_inflate_new();
	size_t used, made = 0, total = 0;
	int r = 0;

	assert(inflate);
	while (r == 0 && (size || made == step) && total + step <= OUT_MAX) {
		size_t part = size < step ? size : step;
		r = files_inflate_run(inflate, input, part, out + total, step, &used, &made);
		if (r == 0) {
			assert(used <= part && made <= step);
			assert(used || made || part == 0);
			input += used;
			size -= used;
			total += made;
		}
	}
	files_inflate_free(inflate);
	*ret_size = total;
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	static uint8_t whole[OUT_MAX], pieces[OUT_MAX];
	size_t whole_size, pieces_size;

	frames(input, size);
	(void)unpack(input, size, 4096, whole, &whole_size);
	(void)unpack(input, size, 7, pieces, &pieces_size);
	size_t same = whole_size < pieces_size ? whole_size : pieces_size;
	assert(memcmp(whole, pieces, same) == 0);
	return 0;
}
