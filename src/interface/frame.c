#include "interface/frame.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define DATA_EXTRA (COOP_FRAME_DATA_HEADER - COOP_FRAME_HEADER)

static uint64_t get64(const uint8_t *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof value);
	return le64toh(value);
}

static void put64(uint8_t *bytes, uint64_t value)
{
	value = htole64(value);
	memcpy(bytes, &value, sizeof value);
}

static uint32_t get32(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof value);
	return le32toh(value);
}

size_t coop_frame_announced(const uint8_t *bytes, size_t size)
{
	return size < COOP_FRAME_HEADER ? 0 : get32(bytes);
}

static void put_header(uint8_t *header, size_t size, enum coop_frame_kind kind, uint8_t stream)
{
	uint32_t length = htole32((uint32_t)size);

	memcpy(header, &length, sizeof length);
	header[4] = (uint8_t)kind;
	header[5] = stream;
	header[6] = header[7] = 0;
}

static int check_header(const uint8_t *bytes, uint32_t size, const char **ret_why)
{
	if (bytes[6] || bytes[7]) {
		*ret_why = "the reserved bytes of a frame header are not zero";
		return -EPROTO;
	}
	if (bytes[4] == COOP_FRAME_JSON) {
		if (size > COOP_FRAME_JSON_MAX) {
			*ret_why = "a JSON frame is larger than 8 MiB";
			return -EMSGSIZE;
		}
		if (size < 2 || bytes[5]) {
			*ret_why = "a JSON frame holds no object or names a stream";
			return -EPROTO;
		}
		return 0;
	}
	if (bytes[4] != COOP_FRAME_DATA) {
		*ret_why = "a frame is neither JSON nor data";
		return -EPROTO;
	}
	if (size > COOP_FRAME_DATA_MAX + DATA_EXTRA) {
		*ret_why = "a data frame holds more than 1 MiB";
		return -EMSGSIZE;
	}
	if (size < DATA_EXTRA || bytes[5] > 4) {
		*ret_why = "a data frame has a bad length or stream";
		return -EPROTO;
	}
	return 0;
}

int coop_frame_parse(const uint8_t *bytes, size_t size, struct coop_frame *ret, size_t *ret_used,
		     const char **ret_why)
{
	if (size < COOP_FRAME_HEADER)
		return 0;
	uint32_t length = get32(bytes);
	int r = check_header(bytes, length, ret_why);
	if (r < 0)
		return r;
	if (size - COOP_FRAME_HEADER < length)
		return 0;
	*ret = (struct coop_frame){
		.kind = (enum coop_frame_kind)bytes[4],
		.bytes = bytes + COOP_FRAME_HEADER,
		.size = length,
	};
	if (ret->kind == COOP_FRAME_DATA) {
		ret->stream = bytes[5];
		ret->request = get64(bytes + 8);
		ret->offset = get64(bytes + 16);
		ret->cursor = get64(bytes + 24);
		ret->bytes += DATA_EXTRA;
		ret->size -= DATA_EXTRA;
	}
	*ret_used = COOP_FRAME_HEADER + length;
	return 1;
}

void coop_frame_put_json(uint8_t header[COOP_FRAME_HEADER], size_t size)
{
	put_header(header, size, COOP_FRAME_JSON, 0);
}

void coop_frame_put_data(uint8_t header[COOP_FRAME_DATA_HEADER], const struct coop_frame *frame)
{
	put_header(header, frame->size + DATA_EXTRA, COOP_FRAME_DATA, frame->stream);
	put64(header + 8, frame->request);
	put64(header + 16, frame->offset);
	put64(header + 24, frame->cursor);
}
