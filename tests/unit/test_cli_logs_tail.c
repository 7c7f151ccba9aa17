/* The last N lines, whatever chunks they come in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "doors/cli/verbs/logs.h"

static char seen[1024];
static uint64_t first_offset;

static void take(void *user, const struct coop_chunk *chunk, const char *at)
{
	if (!seen[0])
		first_offset = chunk->offset;
	strncat(seen, chunk->data, chunk->size);
}

/* Feeds `text` in pieces of `step` bytes and gives what is left of it. */
static const char *tail(const char *text, uint64_t count, size_t step)
{
	struct cli_logs_tail *window = cli_logs_tail_new(count);
	const size_t length = strlen(text);
	assert_non_null(window);
	seen[0] = '\0';
	for (size_t at = 0; at < length; at += step) {
		const struct coop_chunk chunk = {.stream = COOP_STDOUT,
						 .offset = at,
						 .data = text + at,
						 .size = length - at < step ? length - at : step};
		cli_logs_tail_take(window, &chunk, NULL);
	}
	cli_logs_tail_end(window, take, NULL);
	return seen;
}

static void every_cut(void **state)
{
	static const char text[] = "one\ntwo\n\nfour\n";
	for (size_t step = 1; step <= sizeof(text); step++) {
		assert_string_equal(tail(text, 0, step), "");
		assert_string_equal(tail(text, 1, step), "four\n");
		assert_int_equal(first_offset, 9);
		assert_string_equal(tail(text, 2, step), "\nfour\n");
		assert_string_equal(tail(text, 3, step), "two\n\nfour\n");
		assert_string_equal(tail(text, 4, step), text);
		assert_string_equal(tail(text, 100, step), text);
	}
}

static void unfinished_last_line(void **state)
{
	for (size_t step = 1; step <= 8; step++) {
		assert_string_equal(tail("a\nb\nc", 1, step), "c");
		assert_string_equal(tail("a\nb\nc", 2, step), "b\nc");
		assert_string_equal(tail("a\nb\nc", 3, step), "a\nb\nc");
	}
}

static void nothing(void **state)
{
	assert_string_equal(tail("", 3, 1), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_cut),
		cmocka_unit_test(unfinished_last_line),
		cmocka_unit_test(nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
