#include "doors/http/runtime/cut.h"

#include <errno.h>
#include <string.h>

/* One event, or a part of one; its bytes follow. */
struct piece {
	uint64_t cursor;
	size_t size;
	enum coop_stream stream;
};

void coop_runtime_cut_clear(struct coop_runtime_cut *cut)
{
	coop_buf_clear(&cut->head);
	coop_buf_clear(&cut->tail);
}

static int put(struct coop_buf *buf, const struct coop_chunk *chunk, const uint8_t *data,
	       size_t size)
{
	struct piece piece = {.cursor = chunk->cursor, .size = size, .stream = chunk->stream};
	uint8_t *at = coop_buf_reserve(buf, sizeof piece + size);

	if (!at)
		return -ENOMEM;
	memcpy(mempcpy(at, &piece, sizeof piece), data, size);
	coop_buf_commit(buf, sizeof piece + size);
	return 0;
}

/* Takes bytes away from the front of the tail until it fits. */
static void trim(struct coop_runtime_cut *cut)
{
	struct piece piece;

	while (cut->tail_bytes > cut->tail_budget) {
		size_t over = cut->tail_bytes - cut->tail_budget;
		memcpy(&piece, coop_buf_front(&cut->tail), sizeof piece);
		if (piece.stream == COOP_NOTE) {
			coop_buf_consume(&cut->tail, sizeof piece + piece.size);
			continue;
		}
		size_t gone = over < piece.size ? over : piece.size;
		cut->tail_bytes -= gone;
		cut->tail_cut = true;
		if (gone == piece.size) {
			coop_buf_consume(&cut->tail, sizeof piece + piece.size);
			continue;
		}
		/* The front moves; what the piece is stands before its bytes again. */
		piece.size -= gone;
		coop_buf_consume(&cut->tail, gone);
		memcpy(coop_buf_front(&cut->tail), &piece, sizeof piece);
	}
}

int coop_runtime_cut_add(struct coop_runtime_cut *cut, const struct coop_chunk *chunk)
{
	size_t room = cut->head_budget - cut->head_bytes;
	size_t first = chunk->size < room ? chunk->size : room;
	const uint8_t *data = chunk->data;

	/* Notes are no output, and cost nothing: they stand where they come. */
	if (chunk->stream == COOP_NOTE)
		return put(coop_buf_size(&cut->tail) || cut->tail_cut || !room ? &cut->tail
									       : &cut->head,
			   chunk, data, chunk->size);
	if (first && put(&cut->head, chunk, data, first) < 0)
		return -ENOMEM;
	cut->head_bytes += first;
	if (first == chunk->size)
		return 0;
	if (put(&cut->tail, chunk, data + first, chunk->size - first) < 0)
		return -ENOMEM;
	cut->tail_bytes += chunk->size - first;
	trim(cut);
	return 0;
}

static bool piece_at(const struct coop_buf *buf, size_t at, struct coop_chunk *ret)
{
	struct piece piece;

	if (coop_buf_size(buf) < at + sizeof piece)
		return false;
	memcpy(&piece, coop_buf_front(buf) + at, sizeof piece);
	*ret = (struct coop_chunk){.stream = piece.stream,
				   .cursor = piece.cursor,
				   .data = coop_buf_front(buf) + at + sizeof piece,
				   .size = piece.size};
	return true;
}

/* The head's last piece and the tail's first are of one event, and nothing is missing between them:
 * they become one. */
static void join(struct coop_runtime_cut *cut, size_t at, struct coop_chunk *last)
{
	struct coop_chunk first;
	struct piece piece;

	if (cut->tail_cut || at != coop_buf_size(&cut->head) || !piece_at(&cut->tail, 0, &first) ||
	    first.cursor != last->cursor || coop_buf_append(&cut->head, first.data, first.size) < 0)
		return;
	piece = (struct piece){
		.cursor = last->cursor, .size = last->size + first.size, .stream = last->stream};
	uint8_t *place = coop_buf_front(&cut->head) + at - last->size - sizeof piece;
	memcpy(place, &piece, sizeof piece);
	last->data = place + sizeof piece;
	last->size = piece.size;
	coop_buf_consume(&cut->tail, sizeof piece + first.size);
}

bool coop_runtime_cut_next(struct coop_runtime_cut *cut, size_t *at, struct coop_chunk *ret)
{
	size_t head = coop_buf_size(&cut->head);

	if (piece_at(&cut->head, *at, ret)) {
		*at += sizeof(struct piece) + ret->size;
		size_t before = ret->size;
		join(cut, *at, ret);
		*at += ret->size - before;
		return true;
	}
	if (!piece_at(&cut->tail, *at - head, ret))
		return false;
	*at += sizeof(struct piece) + ret->size;
	return true;
}
