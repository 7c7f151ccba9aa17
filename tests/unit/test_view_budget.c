/* Cutting a text to a budget (P-08): it fits, no character is split, lines stay whole where that
 * costs little. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text/utf8.h"
#include "client/views/budget.h"

static void test_a_text_that_fits_is_whole(void **state)
{
	(void)state;
	struct coop_budget_cut cut = coop_budget_cut("abc", 3, 3);
	assert_int_equal(cut.head, 3);
	assert_int_equal(cut.tail, 0);
	cut = coop_budget_cut("", 0, 0);
	assert_int_equal(cut.head, 0);
	assert_int_equal(cut.tail, 0);
}

static void test_b032_a_third_goes_to_the_head_and_the_rest_to_the_tail(void **state)
{
	char text[2000];

	(void)state;
	memset(text, 'x', sizeof text);
	struct coop_budget_cut cut = coop_budget_cut(text, sizeof text, 90);
	assert_int_equal(cut.head, 30);
	assert_int_equal(cut.tail, 60);
	assert_int_equal(coop_budget_head(text, sizeof text, 8), 8);
	assert_int_equal(coop_budget_tail(text, sizeof text, 8), 8);
}

static void test_a_cut_goes_to_a_line_that_is_near(void **state)
{
	char text[900];

	(void)state;
	for (size_t at = 0; at < sizeof text; at++)
		text[at] = at % 10 == 9 ? '\n' : 'x';
	struct coop_budget_cut cut = coop_budget_cut(text, sizeof text, 303);
	assert_int_equal(cut.head, 100);
	assert_int_equal(cut.tail, 200);
	/* A line's end that is far is not worth the bytes. */
	memset(text, 'x', sizeof text);
	text[50] = text[850] = '\n';
	cut = coop_budget_cut(text, sizeof text, 300);
	assert_int_equal(cut.head, 100);
	assert_int_equal(cut.tail, 200);
	/* A line that begins exactly at the cut stays. */
	text[99] = text[699] = '\n';
	cut = coop_budget_cut(text, sizeof text, 300);
	assert_int_equal(cut.head, 100);
	assert_int_equal(cut.tail, 200);
}

static void check_text(const char *text, size_t size)
{
	for (size_t at = 0; at < size;) {
		size_t length = coop_utf8_char((const uint8_t *)text + at, size - at);
		assert_true(length > 0);
		at += length;
	}
}

static void test_no_budget_splits_a_character(void **state)
{
	static const char text[] = "a\xc3\xbc\n\xe2\x82\xac\xf0\x9f\x90\x94 \xe2\x82\xac\n"
				   "\xf0\x9f\x90\x94\xf0\x9f\x90\x94z\xc3\xbc";
	size_t size = sizeof text - 1;

	(void)state;
	for (size_t budget = 0; budget <= size + 1; budget++) {
		struct coop_budget_cut cut = coop_budget_cut(text, size, budget);
		assert_true(cut.head + cut.tail <= budget || budget >= size);
		check_text(text, cut.head);
		check_text(text + size - cut.tail, cut.tail);
		check_text(text, coop_budget_head(text, size, budget));
		size_t tail = coop_budget_tail(text, size, budget);
		check_text(text + size - tail, tail);
		assert_true(tail <= budget);
		assert_true(budget >= size || tail + 3 >= budget);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_text_that_fits_is_whole),
		cmocka_unit_test(test_b032_a_third_goes_to_the_head_and_the_rest_to_the_tail),
		cmocka_unit_test(test_a_cut_goes_to_a_line_that_is_near),
		cmocka_unit_test(test_no_budget_splits_a_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
