/* The last output of a process, as its readers are sent it: each event is written once, as the
 * dialect says it, into a block that all readers share. Readers keep their place as an event
 * number; nothing here knows them.
 *
 * Bytes of a process are counted from its first event on, lost ones included, so that a reader that
 * misses some can say how many. */
#ifndef COOP_HTTP_FEED_WINDOW_H
#define COOP_HTTP_FEED_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coop.h"
#include "doors/http/net/shared.h"
#include "doors/http/runtime/feed.h"

#define COOP_FEED_BLOCK_MIN (4u << 10)
#define COOP_FEED_BLOCK_MAX (256u << 10)

struct coop_feed_block {
	struct coop_feed_block *newer;
	uint64_t after;        /* events [after, first) are lost; mostly they are the same */
	uint64_t first, next;  /* events in it: first <= n < next */
	uint64_t bytes_before; /* of all events before `first` */
	uint64_t bytes;        /* of its own */
	struct coop_http_shared *data;
};

struct coop_feed_window {
	struct coop_feed_block *oldest, *newest;
	size_t size;    /* encoded bytes in all blocks */
	uint64_t tail;  /* events [tail, next) are lost */
	uint64_t next;  /* number of the next event */
	uint64_t bytes; /* of all events before `next` */
	size_t grow;    /* what the next block can hold */
	const struct coop_feed_dialect *dialect;
	const char *common; /* what the dialect made of the name */
};

/* An empty one that begins at event `next`; `common` must outlive it. */
void coop_feed_window_init(struct coop_feed_window *window, const struct coop_feed_dialect *dialect,
			   const char *common, uint64_t next, uint64_t bytes);
void coop_feed_window_clear(struct coop_feed_window *window);

/* Adds the event `next`. -ENOMEM: nothing has changed. */
int coop_feed_window_add(struct coop_feed_window *window, const struct coop_chunk *chunk);
/* Events from `next` up to and without `to` are lost; `bytes` are those of all events before
 * `to`. */
void coop_feed_window_lose(struct coop_feed_window *window, uint64_t to, uint64_t bytes);

/* Drops the oldest blocks, until at most `most` bytes are left. */
void coop_feed_window_trim(struct coop_feed_window *window, size_t most);
/* All readers are at `cursor` or beyond: drops what they do not need. */
void coop_feed_window_passed(struct coop_feed_window *window, uint64_t cursor);

enum coop_feed_where {
	COOP_FEED_READY,  /* in a block */
	COOP_FEED_LOST,   /* lost up to *ret_to */
	COOP_FEED_BEHIND, /* older than the window; *ret_to is where that begins */
	COOP_FEED_AT_END, /* nothing there yet */
};

/* Where the event `cursor` is. READY: its block is in *ret_block. */
enum coop_feed_where coop_feed_window_find(const struct coop_feed_window *window, uint64_t cursor,
					   struct coop_feed_block **ret_block, uint64_t *ret_to);
/* Bytes of all events before `cursor`, which is where lost ones end (*ret_to of LOST and
 * BEHIND). */
uint64_t coop_feed_window_bytes_at(const struct coop_feed_window *window, uint64_t cursor);
/* Where in a block an event in it begins. */
size_t coop_feed_window_offset(const struct coop_feed_window *window,
			       const struct coop_feed_block *block, uint64_t cursor);

/* How many bytes of output an event is: a note is none, although clients see it as stderr. */
static inline uint64_t coop_feed_chunk_bytes(const struct coop_chunk *chunk)
{
	return chunk->stream == COOP_NOTE ? 0 : chunk->size;
}

#endif
