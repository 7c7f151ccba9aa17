#include "doors/http/runtime/feed_window.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text/base64.h"
#include "doors/http/net/ws.h"

#define HEAD_MAX 64

/* Blocks that are kept although everybody has their bytes: an idle process should cost next to
 * nothing. */
#define KEPT_MAX (16u << 10)

static size_t write_head(const struct coop_chunk *chunk, char head[HEAD_MAX])
{
	const char *type = chunk->stream == COOP_STDOUT ? "stdout"
			   : chunk->stream == COOP_PTY  ? "pty"
							: "stderr";

	return (size_t)snprintf(head, HEAD_MAX, "{\"type\":\"%s\",\"cursor\":%llu", type,
				(unsigned long long)chunk->cursor);
}

static size_t payload_size(const struct coop_feed_window *window, const struct coop_chunk *chunk,
			   size_t head)
{
	return head + window->middle_size + coop_base64_length(chunk->size) + 2;
}

size_t coop_feed_frame_size(const struct coop_feed_window *window, const struct coop_chunk *chunk)
{
	uint8_t header[COOP_WS_HEADER_MAX];
	char head[HEAD_MAX];
	size_t size = payload_size(window, chunk, write_head(chunk, head));

	return coop_ws_header(header, size) + size;
}

uint8_t *coop_feed_frame_write(const struct coop_feed_window *window,
			       const struct coop_chunk *chunk, uint8_t *at)
{
	char head[HEAD_MAX];
	size_t size = write_head(chunk, head);

	at += coop_ws_header(at, payload_size(window, chunk, size));
	at = mempcpy(at, head, size);
	at = mempcpy(at, window->middle, window->middle_size);
	coop_base64_encode(chunk->data, chunk->size, (char *)at);
	at += coop_base64_length(chunk->size);
	return mempcpy(at, "\"}", 2);
}

void coop_feed_window_init(struct coop_feed_window *window, const char *middle, uint64_t next,
			   uint64_t bytes)
{
	*window = (struct coop_feed_window){
		.tail = next,
		.next = next,
		.bytes = bytes,
		.grow = COOP_FEED_BLOCK_MIN,
		.middle = middle,
		.middle_size = strlen(middle),
	};
}

static void drop_oldest(struct coop_feed_window *window)
{
	struct coop_feed_block *block = window->oldest;

	window->oldest = block->newer;
	if (!window->oldest)
		window->newest = NULL;
	window->size -= block->data->size;
	coop_shared_unref(block->data);
	free(block);
}

void coop_feed_window_clear(struct coop_feed_window *window)
{
	while (window->oldest)
		drop_oldest(window);
}

static struct coop_feed_block *add_block(struct coop_feed_window *window, size_t size)
{
	struct coop_feed_block *block = coop_mem_zalloc(sizeof *block);

	if (!block)
		return NULL;
	block->data = coop_shared_new(size > window->grow ? size : window->grow);
	if (!block->data) {
		free(block);
		return NULL;
	}
	block->after = window->tail;
	block->first = block->next = window->next;
	block->bytes_before = window->bytes;
	if (window->newest)
		window->newest->newer = block;
	else
		window->oldest = block;
	window->newest = block;
	if (window->grow < COOP_FEED_BLOCK_MAX)
		window->grow *= 2;
	return block;
}

int coop_feed_window_add(struct coop_feed_window *window, const struct coop_chunk *chunk)
{
	struct coop_feed_block *block = window->newest;
	size_t size = coop_feed_frame_size(window, chunk);

	/* After a loss a new one: within a block the numbers have no holes. */
	if (!block || block->next != window->next ||
	    block->data->capacity - block->data->size < size)
		block = add_block(window, size);
	if (!block)
		return -ENOMEM;
	(void)coop_feed_frame_write(window, chunk, block->data->data + block->data->size);
	block->data->size += size;
	block->next++;
	block->bytes += coop_feed_chunk_bytes(chunk);
	window->size += size;
	window->tail = window->next = block->next;
	if (window->bytes != COOP_FEED_UNKNOWN)
		window->bytes += coop_feed_chunk_bytes(chunk);
	return 0;
}

void coop_feed_window_lose(struct coop_feed_window *window, uint64_t to, uint64_t bytes)
{
	if (to <= window->next)
		return;
	window->next = to;
	window->bytes = bytes;
}

void coop_feed_window_trim(struct coop_feed_window *window, size_t most)
{
	while (window->oldest != window->newest && window->size > most)
		drop_oldest(window);
}

void coop_feed_window_passed(struct coop_feed_window *window, uint64_t cursor)
{
	while (window->oldest && window->oldest->next <= cursor) {
		const struct coop_http_shared *data = window->oldest->data;
		bool last = window->oldest == window->newest;
		if (last && data->capacity <= KEPT_MAX && data->size < data->capacity)
			return;
		/* Memory as it is used: a block that was hardly filled makes the next one
		 * smaller. */
		if (last && data->size < data->capacity / 4 && window->grow > COOP_FEED_BLOCK_MIN)
			window->grow = data->capacity / 2 < COOP_FEED_BLOCK_MIN
					       ? COOP_FEED_BLOCK_MIN
					       : data->capacity / 2;
		drop_oldest(window);
	}
}

enum coop_feed_where coop_feed_window_find(const struct coop_feed_window *window, uint64_t cursor,
					   struct coop_feed_block **ret_block, uint64_t *ret_to)
{
	struct coop_feed_block *block = window->oldest;

	if (cursor >= window->next)
		return COOP_FEED_AT_END;
	while (block && block->next <= cursor)
		block = block->newer;
	if (!block) {
		*ret_to = window->next;
		return cursor >= window->tail ? COOP_FEED_LOST : COOP_FEED_BEHIND;
	}
	if (cursor >= block->first) {
		*ret_block = block;
		return COOP_FEED_READY;
	}
	*ret_to = block->first;
	return cursor >= block->after ? COOP_FEED_LOST : COOP_FEED_BEHIND;
}

uint64_t coop_feed_window_bytes_at(const struct coop_feed_window *window, uint64_t cursor)
{
	for (const struct coop_feed_block *block = window->oldest; block; block = block->newer) {
		if (block->first == cursor)
			return block->bytes_before;
	}
	return cursor == window->next ? window->bytes : COOP_FEED_UNKNOWN;
}

/* Frames say how long they are: 126 and 127 announce a longer number behind the two bytes of the
 * header. */
static size_t frame_length(const uint8_t *frame)
{
	size_t size = frame[1] & 0x7fu, count = size == 126 ? 2 : size == 127 ? 8 : 0;

	if (!count)
		return 2 + size;
	size = 0;
	for (size_t i = 0; i < count; i++)
		size = size << 8 | frame[2 + i];
	return 2 + count + size;
}

size_t coop_feed_block_offset(const struct coop_feed_block *block, uint64_t cursor)
{
	size_t offset = 0;

	for (uint64_t n = block->first; n < cursor && offset < block->data->size; n++)
		offset += frame_length(block->data->data + offset);
	return offset;
}
