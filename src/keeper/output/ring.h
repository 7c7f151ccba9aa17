/* The last bytes of a stream, with 64-bit positions that only grow. Readers own their positions;
 * the ring knows none of them. Memory comes with the first byte and grows up to the limit. No I/O
 * here: bytes are read straight into it by the stream. */
#ifndef COOP_KEEPER_RING_H
#define COOP_KEEPER_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define COOP_RING_MIN 4096u
#define COOP_RING_MAX (8u << 20)

struct coop_ring {
	uint8_t *data;
	size_t capacity; /* allocated */
	size_t limit;
	uint64_t start, end; /* retained: start <= position < end */
};

void coop_ring_clear(struct coop_ring *ring);

static inline size_t coop_ring_size(const struct coop_ring *ring)
{
	return (size_t)(ring->end - ring->start);
}

/* Gives up to two places for at least one and at most `want` further bytes; growing comes first. If
 * the ring is at its limit and `overwrite` is set, they may lie over the oldest bytes. Returns
 * their total, 0 if there is no room (never with overwrite), or -ENOMEM. What the places held must
 * count as lost from here on. */
ssize_t coop_ring_offer(struct coop_ring *ring, size_t want, bool overwrite,
			struct iovec ret_places[2], int *ret_count);

/* `size` bytes were put at the offered places. Returns how many of the oldest fell out. */
size_t coop_ring_commit(struct coop_ring *ring, size_t size);

/* Views of up to `max` bytes from `position` (start <= position <= end). Returns the number of
 * views, 0 to 2; they live until the next offer. */
int coop_ring_view(const struct coop_ring *ring, uint64_t position, size_t max,
		   struct iovec ret_views[2]);

/* Forgets everything before `position`. */
void coop_ring_release(struct coop_ring *ring, uint64_t position);

#endif
