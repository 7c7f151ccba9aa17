/* The ring against the plainest of models: the n-th byte of the stream is a function of n, so every
 * view can be checked wherever it lies. Chunk sizes are chosen to have nothing in common with the
 * ring's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "keeper/output/ring.h"

static uint8_t byte_at(uint64_t position)
{
	return (uint8_t)(position * 2654435761u >> 13);
}

/* Writes up to `want` bytes of the stream. Returns what the offer did; *ret_lost counts what fell
 * out. */
static ssize_t feed(struct coop_ring *ring, size_t want, bool overwrite, size_t *ret_lost)
{
	struct iovec places[2];
	int count = -1;
	uint64_t position = ring->end;
	ssize_t total = coop_ring_offer(ring, want, overwrite, places, &count);
	size_t sum = 0;

	*ret_lost = 0;
	if (total <= 0)
		return total;
	assert_in_range(count, 1, 2);
	for (int i = 0; i < count; i++) {
		uint8_t *to = places[i].iov_base;
		sum += places[i].iov_len;
		for (size_t j = 0; j < places[i].iov_len; j++)
			to[j] = byte_at(position++);
	}
	assert_int_equal(sum, total);
	assert_true(sum <= want);
	*ret_lost = coop_ring_commit(ring, sum);
	return total;
}

static void check_view(const struct coop_ring *ring, uint64_t position, size_t max)
{
	struct iovec views[2];
	size_t expected =
		(size_t)(ring->end - position) < max ? (size_t)(ring->end - position) : max;
	int count = coop_ring_view(ring, position, max, views);
	size_t sum = 0;

	for (int i = 0; i < count; i++) {
		const uint8_t *from = views[i].iov_base;
		assert_true(views[i].iov_len > 0);
		for (size_t j = 0; j < views[i].iov_len; j++)
			assert_int_equal(from[j], byte_at(position + sum + j));
		sum += views[i].iov_len;
	}
	assert_int_equal(sum, expected);
}

static void costs_nothing_unused(void **state)
{
	struct coop_ring ring = {.limit = COOP_RING_MAX};

	assert_null(ring.data);
	assert_int_equal(coop_ring_size(&ring), 0);
	coop_ring_release(&ring, 100);
	assert_int_equal(ring.start, 0);
	coop_ring_clear(&ring);
}

static void keeps_the_latest(void **state)
{
	static const size_t limits[] = {COOP_RING_MIN, COOP_RING_MIN + 1, 10007, 65536};

	for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
		struct coop_ring ring = {.limit = limits[l]};
		uint64_t lost = 0;
		for (size_t round = 0; round < 400; round++) {
			size_t fell;
			assert_true(feed(&ring, 1 + round * 3001 % 5003, true, &fell) > 0);
			lost += fell;
			assert_true(ring.capacity <= ring.limit);
			assert_int_equal(ring.start, lost);
			check_view(&ring, ring.start, SIZE_MAX);
			check_view(&ring, ring.start + coop_ring_size(&ring) / 3, 1000);
			check_view(&ring, ring.end, 10);
		}
		/* At its limit it is full: nothing is thrown out early. */
		assert_int_equal(coop_ring_size(&ring), limits[l]);
		coop_ring_clear(&ring);
	}
}

static void loses_nothing_without_overwrite(void **state)
{
	struct coop_ring ring = {.limit = 10007};
	uint64_t read = 0;

	for (size_t round = 0; round < 3000; round++) {
		size_t fell;
		assert_true(feed(&ring, 3000, false, &fell) >= 0);
		assert_int_equal(fell, 0);
		assert_int_equal(ring.start, read);
		check_view(&ring, read, 4096);
		size_t size = coop_ring_size(&ring);
		read += size < round % 4099 ? size : round % 4099;
		coop_ring_release(&ring, read);
	}
	while (coop_ring_size(&ring) < ring.limit) {
		size_t fell;
		assert_true(feed(&ring, SIZE_MAX, false, &fell) > 0);
	}
	size_t fell;
	assert_int_equal(feed(&ring, 1, false, &fell), 0);
	coop_ring_clear(&ring);
}

/* A short read: the places were offered, but only some of them were filled. */
static void short_commit(void **state)
{
	struct coop_ring ring = {.limit = COOP_RING_MIN};
	size_t fell;

	while (coop_ring_size(&ring) < ring.limit)
		assert_true(feed(&ring, SIZE_MAX, true, &fell) > 0);
	for (size_t round = 0; round < 5000; round++) {
		struct iovec places[2];
		int count;
		assert_true(coop_ring_offer(&ring, 1000, true, places, &count) > 0);
		*(uint8_t *)places[0].iov_base = byte_at(ring.end);
		assert_int_equal(coop_ring_commit(&ring, 1), 1);
		check_view(&ring, ring.start, SIZE_MAX);
	}
	coop_ring_clear(&ring);
}

static void clear_keeps_positions(void **state)
{
	struct coop_ring ring = {.limit = COOP_RING_MIN};
	size_t fell;

	assert_int_equal(feed(&ring, 100, true, &fell), 100);
	coop_ring_release(&ring, UINT64_MAX);
	assert_int_equal(ring.start, 100);
	coop_ring_clear(&ring);
	assert_int_equal(ring.start, 100);
	assert_int_equal(feed(&ring, 100, true, &fell), 100);
	check_view(&ring, 100, SIZE_MAX);
	coop_ring_clear(&ring);
}

static void no_memory(void **state)
{
	struct coop_ring ring = {.limit = 1 << 20};
	size_t fell;

	(void)setenv("COOP_FAULT", "alloc:1:1", 1);
	coop_mem_init();
	assert_int_equal(feed(&ring, 10, true, &fell), -ENOMEM);
	(void)unsetenv("COOP_FAULT");
	coop_mem_init();
	assert_true(feed(&ring, 4000, true, &fell) > 0);
	(void)setenv("COOP_FAULT", "alloc:1:1", 1);
	coop_mem_init();
	/* What it has is used up, then it says so; nothing that was kept is lost. */
	ssize_t r;
	while ((r = feed(&ring, 1000, true, &fell)) > 0)
		assert_int_equal(fell, 0);
	assert_int_equal(r, -ENOMEM);
	assert_int_equal(coop_ring_size(&ring), ring.capacity);
	check_view(&ring, 0, SIZE_MAX);
	(void)unsetenv("COOP_FAULT");
	coop_mem_init();
	assert_true(feed(&ring, 1000, true, &fell) > 0);
	assert_true(ring.capacity > COOP_RING_MIN);
	check_view(&ring, ring.start, SIZE_MAX);
	coop_ring_clear(&ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(costs_nothing_unused),
		cmocka_unit_test(keeps_the_latest),
		cmocka_unit_test(loses_nothing_without_overwrite),
		cmocka_unit_test(short_commit),
		cmocka_unit_test(clear_keeps_positions),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
