#include "keeper/output/ring.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The memory goes, the positions stay: how much there ever was is still told. */
void coop_ring_clear(struct coop_ring *ring)
{
	free(ring->data);
	ring->data = NULL;
	ring->capacity = 0;
	ring->start = ring->end;
}

static size_t at(const struct coop_ring *ring, uint64_t position)
{
	return (size_t)(position % ring->capacity);
}

int coop_ring_view(const struct coop_ring *ring, uint64_t position, size_t max,
		   struct iovec ret_views[2])
{
	size_t size = (size_t)(ring->end - position);

	if (size > max)
		size = max;
	if (!size)
		return 0;
	size_t first = ring->capacity - at(ring, position);
	if (first > size)
		first = size;
	ret_views[0] =
		(struct iovec){.iov_base = ring->data + at(ring, position), .iov_len = first};
	ret_views[1] = (struct iovec){.iov_base = ring->data, .iov_len = size - first};
	return size > first ? 2 : 1;
}

/* Where a byte lies depends on the capacity, so each is put at its place in the new memory. */
static int grow(struct coop_ring *ring, size_t capacity)
{
	struct coop_ring grown = *ring;
	struct iovec views[2];
	uint64_t position = ring->start;

	grown.capacity = capacity;
	grown.data = coop_mem_alloc(capacity);
	if (!grown.data)
		return -ENOMEM;
	int count = ring->data ? coop_ring_view(ring, ring->start, SIZE_MAX, views) : 0;
	for (int i = 0; i < count; i++) {
		const uint8_t *from = views[i].iov_base;
		for (size_t left = views[i].iov_len; left;) {
			size_t room = capacity - at(&grown, position);
			size_t n = room < left ? room : left;
			memcpy(grown.data + at(&grown, position), from, n);
			from += n;
			left -= n;
			position += n;
		}
	}
	free(ring->data);
	*ring = grown;
	return 0;
}

static size_t next_capacity(const struct coop_ring *ring)
{
	size_t wanted = ring->capacity ? ring->capacity * 4 : COOP_RING_MIN;

	return wanted < ring->limit ? wanted : ring->limit;
}

ssize_t coop_ring_offer(struct coop_ring *ring, size_t want, bool overwrite,
			struct iovec ret_places[2], int *ret_count)
{
	size_t room = ring->capacity - coop_ring_size(ring);

	if (room < COOP_RING_MIN / 2 && ring->capacity < ring->limit) {
		int r = grow(ring, next_capacity(ring));
		/* What room there is will do until there is memory again. */
		if (r < 0 && !room)
			return r;
		room = ring->capacity - coop_ring_size(ring);
	}
	/* Half the ring at a time: one large read shall not throw out everything that a reader
	 * could still want. */
	if (overwrite && ring->capacity == ring->limit && room < ring->capacity / 2)
		room = ring->capacity / 2;
	if (room > want)
		room = want;
	*ret_count = 0;
	if (!room)
		return 0;
	size_t first = ring->capacity - at(ring, ring->end);
	if (first > room)
		first = room;
	ret_places[(*ret_count)++] =
		(struct iovec){.iov_base = ring->data + at(ring, ring->end), .iov_len = first};
	if (room > first)
		ret_places[(*ret_count)++] =
			(struct iovec){.iov_base = ring->data, .iov_len = room - first};
	return (ssize_t)room;
}

size_t coop_ring_commit(struct coop_ring *ring, size_t size)
{
	uint64_t oldest = ring->start;

	ring->end += size;
	if (coop_ring_size(ring) > ring->capacity)
		ring->start = ring->end - ring->capacity;
	return (size_t)(ring->start - oldest);
}

/* A reader may say a position that is gone, or is yet to come: neither moves the start back, or
 * past the end. */
void coop_ring_release(struct coop_ring *ring, uint64_t position)
{
	if (position > ring->end)
		position = ring->end;
	if (position > ring->start)
		ring->start = position;
}
