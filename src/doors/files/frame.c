#include "doors/files/frame.h"

#include <errno.h>

static uint32_t get_u32(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

static void put_u32(uint8_t *bytes, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		bytes[i] = (uint8_t)(value >> 8 * i);
}

int coop_files_frame_parse(const uint8_t *bytes, size_t size, struct coop_files_frame *ret,
			   size_t *ret_used)
{
	if (size < COOP_FILES_FRAME_HEADER)
		return 0;
	const uint32_t whole = get_u32(bytes), id = get_u32(bytes + 4), json = get_u32(bytes + 8);
	if (whole > COOP_FILES_FRAME_MAX || whole < COOP_FILES_FRAME_HEADER ||
	    json > whole - COOP_FILES_FRAME_HEADER)
		return -EPROTO;
	if (size < whole)
		return 0;
	*ret = (struct coop_files_frame){
		.id = id,
		.json = (const char *)bytes + COOP_FILES_FRAME_HEADER,
		.json_size = json,
		.data = bytes + COOP_FILES_FRAME_HEADER + json,
		.size = whole - COOP_FILES_FRAME_HEADER - json,
	};
	*ret_used = whole;
	return 1;
}

void coop_files_frame_put(uint8_t header[COOP_FILES_FRAME_HEADER], uint32_t id, size_t json_size,
			  size_t size)
{
	put_u32(header, (uint32_t)(COOP_FILES_FRAME_HEADER + json_size + size));
	put_u32(header + 4, id);
	put_u32(header + 8, (uint32_t)json_size);
}
