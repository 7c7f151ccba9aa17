#include "doors/http/net/out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define FIRST_PIECES 8u
#define OWN_BLOCK 2048u

static struct coop_out_piece *piece_at(const struct coop_out *out, size_t index)
{
	return &out->pieces[(out->first + index) & (out->capacity - 1)];
}

void coop_out_clear(struct coop_out *out)
{
	for (size_t i = 0; i < out->count; i++)
		coop_shared_unref(piece_at(out, i)->block);
	free(out->pieces);
	*out = (struct coop_out){0};
}

static int make_room(struct coop_out *out)
{
	size_t capacity = out->capacity ? out->capacity * 2 : FIRST_PIECES;

	if (out->count < out->capacity)
		return 0;
	struct coop_out_piece *pieces = coop_mem_alloc(capacity * sizeof *pieces);
	if (!pieces)
		return -ENOMEM;
	for (size_t i = 0; i < out->count; i++)
		pieces[i] = *piece_at(out, i);
	free(out->pieces);
	out->pieces = pieces;
	out->first = 0;
	out->capacity = capacity;
	return 0;
}

static void count(struct coop_out *out, size_t size, bool answer)
{
	out->bytes += size;
	if (answer)
		out->answers += size;
}

/* Adds to the last piece if that is a copy of ours with room behind it. */
static bool extend(struct coop_out *out, const void *data, size_t size, bool answer)
{
	if (!out->count)
		return false;
	struct coop_out_piece *last = piece_at(out, out->count - 1);
	struct coop_http_shared *block = last->block;
	if (block->refs != 1 || last->answer != answer || last->to != block->size ||
	    block->capacity - block->size < size)
		return false;
	memcpy(block->data + block->size, data, size);
	block->size += size;
	last->to += size;
	count(out, size, answer);
	return true;
}

int coop_out_copy(struct coop_out *out, const void *data, size_t size, bool answer)
{
	if (!size || extend(out, data, size, answer))
		return 0;
	if (make_room(out) < 0)
		return -ENOMEM;
	struct coop_http_shared *block = coop_shared_new(size > OWN_BLOCK ? size : OWN_BLOCK);
	if (!block)
		return -ENOMEM;
	memcpy(block->data, data, size);
	block->size = size;
	out->count++;
	*piece_at(out, out->count - 1) = (struct coop_out_piece){block, 0, size, answer};
	count(out, size, answer);
	return 0;
}

int coop_out_share(struct coop_out *out, struct coop_http_shared *block, size_t from, size_t to)
{
	struct coop_out_piece *last = out->count ? piece_at(out, out->count - 1) : NULL;

	if (from == to)
		return 0;
	if (last && last->block == block && last->to == from && !last->answer) {
		last->to = to;
	} else {
		if (make_room(out) < 0)
			return -ENOMEM;
		out->count++;
		*piece_at(out, out->count - 1) =
			(struct coop_out_piece){coop_shared_ref(block), from, to, false};
	}
	count(out, to - from, false);
	return 0;
}

unsigned coop_out_front(const struct coop_out *out, struct iovec iov[COOP_OUT_IOV])
{
	unsigned filled = 0;

	for (; filled < out->count && filled < COOP_OUT_IOV; filled++) {
		const struct coop_out_piece *piece = piece_at(out, filled);
		iov[filled].iov_base = piece->block->data + piece->from;
		iov[filled].iov_len = piece->to - piece->from;
	}
	return filled;
}

void coop_out_consume(struct coop_out *out, size_t size)
{
	out->bytes -= size;
	while (size) {
		struct coop_out_piece *piece = piece_at(out, 0);
		size_t part = piece->to - piece->from;
		if (part > size)
			part = size;
		piece->from += part;
		size -= part;
		if (piece->answer)
			out->answers -= part;
		if (piece->from < piece->to)
			return;
		coop_shared_unref(piece->block);
		out->first = (out->first + 1) & (out->capacity - 1);
		out->count--;
	}
	/* An idle connection keeps no queue. */
	if (!out->count)
		coop_out_clear(out);
}
