/* Frames of the keeper's socket (docs/PROTOCOL.md section 2). Bytes in, frames out: no I/O here. */
#ifndef COOP_INTERFACE_FRAME_H
#define COOP_INTERFACE_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define COOP_FRAME_HEADER 8u
#define COOP_FRAME_DATA_HEADER 32u /* the frame's own header included */
#define COOP_FRAME_JSON_MAX (8u << 20)
#define COOP_FRAME_DATA_MAX (1u << 20)
#define COOP_FRAME_NO_CURSOR UINT64_MAX

enum coop_frame_kind {
	COOP_FRAME_JSON = 'J',
	COOP_FRAME_DATA = 'D',
};

struct coop_frame {
	enum coop_frame_kind kind;
	const uint8_t *bytes; /* the JSON text, or the raw bytes; points into the input */
	size_t size;
	/* data frames only */
	uint8_t stream;
	uint64_t request, offset, cursor;
};

/* Looks for one frame at the start of `bytes`. Returns 1 with *ret and *ret_used (bytes of the
 * frame) filled; 0 if more bytes are needed; -EMSGSIZE (over a limit) or -EPROTO (not a frame),
 * with *ret_why a sentence that lives for ever. A fault shows from the header alone, before the
 * payload has arrived. */
int coop_frame_parse(const uint8_t *bytes, size_t size, struct coop_frame *ret, size_t *ret_used,
		     const char **ret_why);

/* The size of the payload that the header at the start of `bytes` announces; 0 while it is not
 * there. */
size_t coop_frame_announced(const uint8_t *bytes, size_t size);

/* Writes the header of a JSON frame of `size` bytes. */
void coop_frame_put_json(uint8_t header[COOP_FRAME_HEADER], size_t size);

/* Writes the header of a data frame; frame->size raw bytes must follow it. */
void coop_frame_put_data(uint8_t header[COOP_FRAME_DATA_HEADER], const struct coop_frame *frame);

#endif
