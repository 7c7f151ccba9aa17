/* The screen of a terminal as text (P-07): what stands there, where the cursor is, and no bytes
 * that harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "client/views/screen.h"

static void assert_line(const struct coop_screen *screen, unsigned row, const char *want)
{
	char *line;

	assert_int_equal(coop_screen_line(screen, row, &line), 0);
	assert_string_equal(line, want);
	free(line);
}

static void assert_cursor(const struct coop_screen *screen, unsigned col, unsigned row)
{
	struct coop_screen_cursor cursor = coop_screen_cursor(screen);

	assert_int_equal(cursor.col, col);
	assert_int_equal(cursor.row, row);
}

static void show(struct coop_screen *screen, const char *text)
{
	coop_screen_feed(screen, text, strlen(text));
}

/* Shows bytes on 10 by 4, cut at every place; the first four lines are as said. */
static void check(const char *bytes, const char *const lines[4])
{
	size_t size = strlen(bytes);

	for (size_t cut = 0; cut <= size; cut++) {
		struct coop_screen *screen = coop_screen_new(10, 4);
		assert_non_null(screen);
		coop_screen_feed(screen, bytes, cut);
		coop_screen_feed(screen, bytes + cut, size - cut);
		for (unsigned row = 0; row < 4; row++)
			assert_line(screen, row, lines[row]);
		coop_screen_free(screen);
	}
}

#define LINES(...) ((const char *const[4]){__VA_ARGS__})

static void test_text_stands_where_it_was_written(void **state)
{
	(void)state;
	check("", LINES("", "", "", ""));
	check("one\r\ntwo   \r\n  three", LINES("one", "two", "  three", ""));
	check("0123456789abc", LINES("0123456789", "abc", "", ""));
	check("1\r\n2\r\n3\r\n4\r\n5", LINES("2", "3", "4", "5"));
	check("\x1b[2;3Hx\x1b[4Hy\x1b[H!", LINES("!", "  x", "", "y"));
	check("abc\x1b[2J", LINES("", "", "", ""));
	check("abcdef\x1b[3G\x1b[K", LINES("ab", "", "", ""));
	check("\x1b[1;31mred\x1b[0m \x1b[7mrev\x1b[m", LINES("red rev", "", "", ""));
	check("a\tb", LINES("a       b", "", "", ""));
}

static void test_characters_of_every_kind(void **state)
{
	(void)state;
	check("gr\xc3\xbc\xc3\x9f", LINES("gr\xc3\xbc\xc3\x9f", "", "", ""));
	/* A wide one takes two columns, and goes to the next line if it has room for one. */
	check("\xe6\x97\xa5\xe6\x9c\xac!", LINES("\xe6\x97\xa5\xe6\x9c\xac!", "", "", ""));
	check("123456789\xe6\x97\xa5", LINES("123456789", "\xe6\x97\xa5", "", ""));
	check("e\xcc\x81z", LINES("e\xcc\x81z", "", "", ""));
	check("\xf0\x9f\x90\x94", LINES("\xf0\x9f\x90\x94", "", "", ""));
	check("a\xff", LINES("a\xef\xbf\xbd", "", "", ""));
	/* Lines are drawn with a character set of their own. */
	check("\x1b(0lqk\x1b(B-", LINES("\xe2\x94\x8c\xe2\x94\x80\xe2\x94\x90-", "", "", ""));
	/* Control characters of 8 bits have no width at all. */
	check("\xc2\x85\xc2\x80x", LINES("x", "", "", ""));
}

static void test_lines_scroll_within_a_region(void **state)
{
	(void)state;
	check("a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[3H\nx", LINES("a", "c", "x", "d"));
	check("a\r\nb\r\nc\x1b[1H\x1b[L", LINES("", "a", "b", "c"));
	check("a\r\nb\r\nc\x1b[1H\x1b[M", LINES("b", "c", "", ""));
	check("abc\x1b[1G\x1b[2@", LINES("  abc", "", "", ""));
	check("abc\x1b[1G\x1b[2P", LINES("c", "", "", ""));
}

static void test_cursor_and_its_visibility(void **state)
{
	struct coop_screen *screen = coop_screen_new(10, 4);

	(void)state;
	assert_cursor(screen, 0, 0);
	assert_true(coop_screen_cursor(screen).visible);
	show(screen, "ab\r\nc\x1b[?25l");
	assert_cursor(screen, 1, 1);
	assert_false(coop_screen_cursor(screen).visible);
	show(screen, "\x1b[?25h\x1b[99;99H");
	assert_cursor(screen, 9, 3);
	assert_true(coop_screen_cursor(screen).visible);
	coop_screen_free(screen);
}

static void test_a_full_screen_program_has_a_screen_of_its_own(void **state)
{
	struct coop_screen *screen = coop_screen_new(10, 4);

	(void)state;
	show(screen, "shell");
	assert_false(coop_screen_is_alternate(screen));
	show(screen, "\x1b[?1049h\x1b[Hvim");
	assert_true(coop_screen_is_alternate(screen));
	assert_line(screen, 0, "vim");
	show(screen, "\x1b[?1049l");
	assert_false(coop_screen_is_alternate(screen));
	assert_line(screen, 0, "shell");
	coop_screen_free(screen);
}

static void test_title(void **state)
{
	static const char bytes[] = "\x1b]0;gr\xc3\xbc\x01\xff ok\x07text\x1b]7;other\x1b\\";

	(void)state;
	for (size_t cut = 0; cut < sizeof bytes; cut++) {
		struct coop_screen *screen = coop_screen_new(10, 4);
		assert_string_equal(coop_screen_title(screen), "");
		coop_screen_feed(screen, bytes, cut);
		coop_screen_feed(screen, bytes + cut, sizeof bytes - 1 - cut);
		assert_string_equal(coop_screen_title(screen), "gr\xc3\xbc ok");
		assert_line(screen, 0, "text");
		coop_screen_free(screen);
	}
	char *huge = malloc(100000);
	memset(huge, 'x', 100000);
	memcpy(huge, "\x1b]2;", 4);
	struct coop_screen *screen = coop_screen_new(10, 4);
	coop_screen_feed(screen, huge, 50000);
	show(screen, "\x07");
	assert_in_range(strlen(coop_screen_title(screen)), 200, 255);
	coop_screen_free(screen);
	free(huge);
}

static void test_sizes_are_clamped(void **state)
{
	(void)state;
	struct coop_screen *screen = coop_screen_new(0, 0);
	assert_non_null(screen);
	show(screen, "a\xe6\x97\xa5\r\nb");
	assert_line(screen, 0, "b");
	assert_line(screen, 1, "");
	coop_screen_free(screen);
	screen = coop_screen_new(4000000000u, 4000000000u);
	assert_non_null(screen);
	show(screen, "\x1b[5000;5000Hx");
	assert_cursor(screen, 999, 999);
	coop_screen_free(screen);
}

static void test_hostile_sequences_do_no_harm(void **state)
{
	static const char *const bytes[] = {
		"\x1b[1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19;20;21;22;23;24;25;26H",
		"\x1b[99999999999999999999999999A",
		"\x1b[2147483647;2147483647r\x1b[2147483647S\x1b[2147483647T",
		"\x1b[3;2r\x1b[0;0r\x1b[-1;-5r",
		"\x1b[2147483647@\x1b[2147483647P\x1b[2147483647L\x1b[2147483647M",
		"\x1b[999999999X\x1b[999999999b\x1b[999999999I\x1b[999999999Z",
		"\x1b[?3h\x1b[?69h\x1b[5;2s\x1b[?6h\x1b[?2l",
		"\x1b[8;5000;5000t\x1b[6n\x1b[c\x1b[5n\x1b[?1$p",
		"\x1b#3\x1b#4\x1b#5\x1b#6\x1b#8",
	};

	(void)state;
	for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
		struct coop_screen *screen = coop_screen_new(10, 4);
		for (int times = 0; times < 3; times++)
			show(screen, bytes[i]);
		show(screen, "\x1b[!p\x1b"
			     "c\x1b[?2h\x1b[Hstill here");
		assert_line(screen, 0, "still here");
		coop_screen_free(screen);
	}
}

static void test_marks_without_end_on_one_character(void **state)
{
	struct coop_screen *screen = coop_screen_new(10, 4);

	(void)state;
	show(screen, "e");
	for (int i = 0; i < 10000; i++)
		show(screen, "\xcc\x81");
	show(screen, "z");
	char *line;
	assert_int_equal(coop_screen_line(screen, 0, &line), 0);
	assert_int_equal(line[0], 'e');
	assert_int_equal(line[strlen(line) - 1], 'z');
	assert_true(strlen(line) < 20);
	free(line);
	coop_screen_free(screen);
}

static void test_a_screen_has_a_bound_on_its_work(void **state)
{
	struct coop_screen *screen = coop_screen_new(1000, 1000);
	char lines[1000];

	(void)state;
	memset(lines, '\n', sizeof lines);
	show(screen, "x");
	assert_false(coop_screen_is_worn_out(screen));
	coop_screen_feed(screen, lines, sizeof lines);
	assert_true(coop_screen_is_worn_out(screen));
	assert_line(screen, 0, "x");
	coop_screen_free(screen);
	screen = coop_screen_new(80, 24);
	for (int i = 0; i < 200; i++)
		coop_screen_feed(screen, lines, sizeof lines);
	assert_false(coop_screen_is_worn_out(screen));
	show(screen, "y");
	assert_line(screen, 23, "y");
	coop_screen_free(screen);
}

static void test_want_of_memory_is_told(void **state)
{
	bool was_made = false;

	(void)state;
	for (int n = 1; n < 40; n++) {
		char fault[32];
		(void)snprintf(fault, sizeof fault, "alloc:%d", n);
		assert_int_equal(setenv("COOP_FAULT", fault, 1), 0);
		coop_mem_init();
		struct coop_screen *screen = coop_screen_new(10, 4);
		if (screen) {
			char *line = NULL;
			show(screen, "abc");
			if (coop_screen_line(screen, 0, &line) == 0)
				assert_string_equal(line, "abc");
			free(line);
			was_made = true;
		}
		/* Once it was made without a failure, it always is. */
		assert_true(screen || !was_made);
		coop_screen_free(screen);
	}
	assert_true(was_made);
	assert_int_equal(unsetenv("COOP_FAULT"), 0);
	coop_mem_init();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_stands_where_it_was_written),
		cmocka_unit_test(test_characters_of_every_kind),
		cmocka_unit_test(test_lines_scroll_within_a_region),
		cmocka_unit_test(test_cursor_and_its_visibility),
		cmocka_unit_test(test_a_full_screen_program_has_a_screen_of_its_own),
		cmocka_unit_test(test_title),
		cmocka_unit_test(test_sizes_are_clamped),
		cmocka_unit_test(test_hostile_sequences_do_no_harm),
		cmocka_unit_test(test_marks_without_end_on_one_character),
		cmocka_unit_test(test_a_screen_has_a_bound_on_its_work),
		cmocka_unit_test(test_want_of_memory_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
