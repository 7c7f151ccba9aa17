/* When the next note about a process comes: each time after twice as long, up to the longest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "keeper/process/progress.h"

#define MS 1000000ull

static void check(uint64_t asked_ms, const uint64_t *wanted_ms, size_t count)
{
	uint64_t interval = asked_ms * MS;

	for (size_t i = 0; i < count; i++) {
		interval = coop_progress_next(interval, asked_ms * MS);
		assert_int_equal(interval, wanted_ms[i] * MS);
	}
}

static void doubles_up_to_the_longest(void **state)
{
	(void)state;
	check(100, (const uint64_t[]){200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000},
	      10);
	check(15000, (const uint64_t[]){30000, 30000}, 2);
	check(20000, (const uint64_t[]){30000, 30000}, 2);
	check(30000, (const uint64_t[]){30000, 30000}, 2);
}

static void never_less_than_asked_for(void **state)
{
	(void)state;
	check(60000, (const uint64_t[]){60000, 60000}, 2);
	/* The most that the arguments take. */
	check(315360000000ull, (const uint64_t[]){315360000000ull, 315360000000ull}, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(doubles_up_to_the_longest),
		cmocka_unit_test(never_less_than_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
