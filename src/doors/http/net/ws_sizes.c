#include "doors/http/net/ws_sizes.h"

#define MASKED 0x80u
#define LENGTH 0x7fu
#define FINAL 0x80u
#define CONTROL 0x08u
#define OPCODE 0x0fu
#define CLOSE 0x08u
#define CONTROL_MAX 125u

/* How long the head is, as far as can be told from what is there. */
static unsigned head_size(const struct coop_ws_sizes *sizes)
{
	if (sizes->have < 2)
		return 2;
	unsigned length = sizes->head[1] & LENGTH;
	unsigned more = length == 126 ? 2 : length == 127 ? 8 : 0;
	return 2 + more + (sizes->head[1] & MASKED ? 4 : 0);
}

static uint64_t payload_size(const struct coop_ws_sizes *sizes)
{
	unsigned length = sizes->head[1] & LENGTH;
	unsigned bytes = length == 126 ? 2 : length == 127 ? 8 : 0;
	uint64_t value = bytes ? 0 : length;

	for (unsigned i = 0; i < bytes; i++)
		value = value << 8 | sizes->head[2 + i];
	return value;
}

/* A frame's head is there. */
static unsigned begin_frame(struct coop_ws_sizes *sizes, uint64_t max)
{
	sizes->payload = payload_size(sizes);
	sizes->have = 0;
	sizes->data = !(sizes->head[0] & CONTROL);
	sizes->last = sizes->head[0] & FINAL;
	if (sizes->payload >> 63 || (!sizes->data && sizes->payload > CONTROL_MAX))
		return COOP_WS_PROTOCOL;
	/* The code of a close frame has two bytes, or is not there. */
	if ((sizes->head[0] & OPCODE) == CLOSE && sizes->payload == 1)
		return COOP_WS_PROTOCOL;
	if (sizes->payload > max || (sizes->data && ++sizes->frames > COOP_WS_FRAMES_MAX))
		return COOP_WS_TOO_LARGE;
	return 0;
}

static void end_frame(struct coop_ws_sizes *sizes)
{
	if (sizes->data && sizes->last) {
		sizes->message = 0;
		sizes->frames = 0;
	}
}

unsigned coop_ws_sizes_look(struct coop_ws_sizes *sizes, const uint8_t *data, size_t size,
			    uint64_t max)
{
	while (size) {
		if (sizes->payload) {
			size_t part = sizes->payload < size ? (size_t)sizes->payload : size;
			sizes->payload -= part;
			sizes->message += sizes->data ? part : 0;
			data += part;
			size -= part;
			if (!sizes->payload)
				end_frame(sizes);
			continue;
		}
		sizes->head[sizes->have++] = *data++;
		size--;
		if (sizes->have < head_size(sizes))
			continue;
		unsigned code = begin_frame(sizes, max);
		if (code)
			return code;
		if (!sizes->payload)
			end_frame(sizes);
	}
	return 0;
}
