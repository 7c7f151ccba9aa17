/* The event index: numbers never change, the oldest fall out at the limit and stay counted. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "keeper/output/index.h"

static struct coop_index_event event_of(uint64_t number)
{
	return (struct coop_index_event){
		.offset = number * 10,
		.at_ms = (uint32_t)number,
		.size = (uint16_t)(1 + number % 100),
		.stream = (uint8_t)(1 + number % 2),
	};
}

static void check_all(const struct coop_index *index)
{
	uint64_t forgotten = 0;

	for (uint64_t n = 0; n < index->first; n++)
		forgotten += event_of(n).size;
	assert_int_equal(index->forgotten_bytes, forgotten);
	uint64_t before = 1;
	assert_int_equal(coop_index_bytes_before(index, index->next + 1, &before), false);
	assert_int_equal(coop_index_bytes_before(index, 0, &before), true);
	assert_int_equal(before, 0);
	if (index->first > 1)
		assert_int_equal(coop_index_bytes_before(index, index->first - 1, &before), false);
	for (uint64_t n = index->first, sum = forgotten; n <= index->next; n++) {
		assert_int_equal(coop_index_bytes_before(index, n, &before), true);
		assert_int_equal(before, sum);
		sum += event_of(n).size;
	}
	for (uint64_t n = index->first; n < index->next; n++) {
		const struct coop_index_event *event = coop_index_get(index, n);
		assert_int_equal(event->offset, n * 10);
		assert_int_equal(event->size, 1 + n % 100);
	}
}

static void keeps_the_latest(void **state)
{
	static const size_t limits[] = {16, 17, 100, 1000};

	for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
		struct coop_index index = {.limit = limits[l]};
		for (uint64_t n = 0; n < 3000; n++) {
			assert_int_equal(index.next, n);
			assert_int_equal(coop_index_add(&index, event_of(n)), 0);
			assert_int_equal(index.first, n + 1 < limits[l] ? 0 : n + 1 - limits[l]);
			if (n % 97 == 0)
				check_all(&index);
		}
		check_all(&index);
		coop_index_clear(&index);
		assert_int_equal(index.first, 3000);
		check_all(&index);
	}
}

static void no_memory(void **state)
{
	struct coop_index index = {.limit = 1000};

	(void)setenv("COOP_FAULT", "alloc:1:1", 1);
	coop_mem_init();
	/* Without any memory events come and fall out at once. */
	for (uint64_t n = 0; n < 5; n++)
		assert_int_equal(coop_index_add(&index, event_of(n)), -ENOMEM);
	assert_int_equal(index.first, 5);
	assert_int_equal(index.next, 5);
	check_all(&index);
	(void)unsetenv("COOP_FAULT");
	coop_mem_init();
	for (uint64_t n = 5; n < 21; n++)
		assert_int_equal(coop_index_add(&index, event_of(n)), 0);
	/* It cannot grow: the oldest makes room. */
	(void)setenv("COOP_FAULT", "alloc:1:1", 1);
	coop_mem_init();
	assert_int_equal(coop_index_add(&index, event_of(21)), -ENOMEM);
	(void)unsetenv("COOP_FAULT");
	coop_mem_init();
	assert_int_equal(index.first, 6);
	assert_int_equal(index.next, 22);
	check_all(&index);
	coop_index_clear(&index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_latest),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
