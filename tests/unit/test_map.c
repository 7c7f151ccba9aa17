/* The map: against a plain array that does the same, through growth and removal. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/map.h"
#include "base/mem.h"

#define KEYS 997u

static char values[2];

static void starts_empty(void **state)
{
	struct coop_map map = {0};

	assert_null(coop_map_get(&map, 1));
	assert_null(coop_map_remove(&map, 1));
	coop_map_clear(&map);
	coop_map_clear(&map);
}

/* Keys are close together, far apart, and equal in their low bits. */
static uint64_t key_of(size_t i)
{
	static const uint64_t steps[] = {1, UINT64_C(1) << 32, 4096};

	return (i + 1) * steps[i % 3] + i % 3;
}

static void like_an_array(void **state)
{
	struct coop_map map = {0};
	void *model[KEYS] = {0};
	size_t used = 0;
	uint32_t random = 1;

	for (size_t round = 0; round < 50000; round++) {
		random = random * 1664525u + 1013904223u;
		size_t i = (random >> 8) % KEYS;
		void *before = model[i];
		assert_ptr_equal(coop_map_get(&map, key_of(i)), before);
		if (random >> 31) {
			assert_ptr_equal(coop_map_remove(&map, key_of(i)), before);
			model[i] = NULL;
			used -= before != NULL;
		} else {
			model[i] = &values[round % 2];
			assert_int_equal(coop_map_put(&map, key_of(i), model[i]), 0);
			used += before == NULL;
		}
		assert_int_equal(map.used, used);
	}
	for (size_t i = 0; i < KEYS; i++)
		assert_ptr_equal(coop_map_get(&map, key_of(i)), model[i]);
	coop_map_clear(&map);
}

static void no_memory(void **state)
{
	struct coop_map map = {0};
	uint64_t key = 1;

	assert_int_equal(coop_map_put(&map, key, values), 0);
	(void)setenv("COOP_FAULT", "alloc:1:1", 1);
	coop_mem_init();
	/* What fits needs no memory; some later one must fail, and changes nothing. */
	assert_int_equal(coop_map_put(&map, ++key, values), 0);
	while (coop_map_put(&map, key + 1, values) == 0)
		key++;
	assert_int_equal(map.used, key);
	assert_null(coop_map_get(&map, key + 1));
	assert_int_equal(coop_map_put(&map, key + 1, values), -ENOMEM);
	(void)unsetenv("COOP_FAULT");
	coop_mem_init();
	for (uint64_t i = 1; i <= key; i++)
		assert_ptr_equal(coop_map_get(&map, i), values);
	coop_map_clear(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_empty),
		cmocka_unit_test(like_an_array),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
