#include "doors/files/inflate.h"

#include <errno.h>
#include <stdlib.h>
#include <zlib.h>

#include "base/mem.h"

#define GZIP_ONLY (MAX_WBITS + 16)

struct files_inflate {
	z_stream stream;
	bool ended; /* a member is whole; what comes next begins another */
};

struct files_inflate *files_inflate_new(void)
{
	struct files_inflate *unpacker = coop_mem_zalloc(sizeof *unpacker);

	if (unpacker && inflateInit2(&unpacker->stream, GZIP_ONLY) != Z_OK) {
		free(unpacker);
		return NULL;
	}
	return unpacker;
}

void files_inflate_free(struct files_inflate *unpacker)
{
	if (!unpacker)
		return;
	(void)inflateEnd(&unpacker->stream);
	free(unpacker);
}

int files_inflate_run(struct files_inflate *unpacker, const uint8_t *in, size_t size, uint8_t *out,
		      size_t room, size_t *ret_used, size_t *ret_made)
{
	z_stream *stream = &unpacker->stream;
	int status = Z_OK;

	if (size && unpacker->ended) {
		if (inflateReset(stream) != Z_OK)
			return -EBADMSG;
		unpacker->ended = false;
	}
	stream->next_in = (Bytef *)(uintptr_t)in; /* zlib only reads there */
	stream->avail_in = (uInt)size;
	stream->next_out = out;
	stream->avail_out = (uInt)room;
	if (!unpacker->ended)
		status = inflate(stream, Z_NO_FLUSH);
	if (status == Z_MEM_ERROR)
		return -ENOMEM;
	/* Z_BUF_ERROR: nothing could be done with what there is, which is no fault. */
	if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
		return -EBADMSG;
	unpacker->ended = unpacker->ended || status == Z_STREAM_END;
	*ret_used = size - stream->avail_in;
	*ret_made = room - stream->avail_out;
	return 0;
}

bool files_inflate_complete(const struct files_inflate *unpacker)
{
	return unpacker->ended;
}
