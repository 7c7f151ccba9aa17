#include "doors/http/runtime/feed_window.h"

#include <errno.h>
#include <stdlib.h>

#include "base/mem.h"

/* Blocks that are kept although everybody has their bytes: an idle process should cost next to
 * nothing. */
#define KEPT_MAX (16u << 10)

void coop_feed_window_init(struct coop_feed_window *window, const struct coop_feed_dialect *dialect,
			   const char *common, uint64_t next, uint64_t bytes)
{
	*window = (struct coop_feed_window){
		.tail = next,
		.next = next,
		.bytes = bytes,
		.grow = COOP_FEED_BLOCK_MIN,
		.dialect = dialect,
		.common = common,
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
	size_t size = window->dialect->event_size(window->common, chunk);

	/* After a loss a new one: within a block the numbers have no holes. */
	if (!block || block->next != window->next ||
	    block->data->capacity - block->data->size < size)
		block = add_block(window, size);
	if (!block)
		return -ENOMEM;
	(void)window->dialect->event_write(window->common, chunk,
					   block->data->data + block->data->size);
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

size_t coop_feed_window_offset(const struct coop_feed_window *window,
			       const struct coop_feed_block *block, uint64_t cursor)
{
	size_t offset = 0;

	for (uint64_t n = block->first; n < cursor && offset < block->data->size; n++)
		offset += window->dialect->event_length(block->data->data + offset);
	return offset;
}
