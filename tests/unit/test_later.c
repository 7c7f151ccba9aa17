/* The queue of work for the end of the turn: each item once, in order, and what an item queues
 * waits for the next run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/later.h"

struct work {
	struct coop_laters *laters;
	struct coop_later later;
	struct work *cancels;
	int runs, order, again;
};

static int runs;

static void run(struct coop_later *item)
{
	struct work *work = COOP_LATER_OWNER(item, struct work, later);

	work->runs++;
	work->order = ++runs;
	if (work->cancels)
		coop_later_cancel(&work->cancels->later);
	if (work->again-- > 0)
		coop_later(work->laters, &work->later);
}

static void set_up(struct coop_laters *laters, struct work *works, size_t count)
{
	runs = 0;
	coop_laters_init(laters);
	for (size_t i = 0; i < count; i++)
		works[i] = (struct work){.laters = laters, .later.run = run};
}

static void test_once_in_order(void **state)
{
	struct coop_laters laters;
	struct work works[2];

	(void)state;
	set_up(&laters, works, 2);
	assert_false(coop_laters_run(&laters));
	coop_later(&laters, &works[1].later);
	coop_later(&laters, &works[0].later);
	coop_later(&laters, &works[1].later);
	assert_false(coop_laters_run(&laters));
	assert_int_equal(works[0].runs, 1);
	assert_int_equal(works[1].runs, 1);
	assert_int_equal(works[1].order, 1);
}

static void test_queued_meanwhile_waits(void **state)
{
	struct coop_laters laters;
	struct work work;

	(void)state;
	set_up(&laters, &work, 1);
	work.again = 2;
	coop_later(&laters, &work.later);
	assert_true(coop_laters_run(&laters));
	assert_int_equal(work.runs, 1);
	assert_true(coop_laters_run(&laters));
	assert_false(coop_laters_run(&laters));
	assert_int_equal(work.runs, 3);
}

static void test_taken_back(void **state)
{
	struct coop_laters laters;
	struct work works[3];

	(void)state;
	set_up(&laters, works, 3);
	coop_later_cancel(&works[0].later);
	works[0].cancels = &works[1];
	for (size_t i = 0; i < 3; i++)
		coop_later(&laters, &works[i].later);
	coop_later_cancel(&works[2].later);
	assert_false(coop_laters_run(&laters));
	assert_int_equal(works[0].runs, 1);
	assert_int_equal(works[1].runs, 0);
	assert_int_equal(works[2].runs, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_once_in_order),
		cmocka_unit_test(test_queued_meanwhile_waits),
		cmocka_unit_test(test_taken_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
