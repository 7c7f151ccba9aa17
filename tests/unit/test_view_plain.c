/* Output as plain text (P-07): escapes go, overwritten lines collapse, every byte knows where it
 * came from, and no cut of the bytes changes anything. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/text/utf8.h"
#include "client/views/plain.h"

#define FFFD "\xef\xbf\xbd"
#define START 1000u /* offset of the first byte */

/* The view of bytes that come in two pieces; the caller frees it. */
static struct coop_plain *view(unsigned flags, const char *bytes, size_t size, size_t cut)
{
	struct coop_plain *plain = coop_plain_new(flags, START);

	assert_non_null(plain);
	assert_int_equal(coop_plain_feed(plain, bytes, cut), 0);
	assert_int_equal(coop_plain_feed(plain, bytes + cut, size - cut), 0);
	return plain;
}

static void assert_text(const struct coop_plain *plain, const char *want)
{
	size_t size;
	const char *text = coop_plain_text(plain, &size);

	if (size != strlen(want) || memcmp(text, want, size) != 0)
		fail_msg("\"%.*s\" where \"%s\" was to be", (int)size, text, want);
}

/* The same text at every cut, and byte by byte. */
static void check_bytes(unsigned flags, const char *bytes, size_t size, const char *want)
{
	for (size_t cut = 0; cut <= size; cut++) {
		struct coop_plain *plain = view(flags, bytes, size, cut);
		assert_int_equal(coop_plain_finish(plain), 0);
		assert_text(plain, want);
		assert_int_equal(coop_plain_offset(plain, strlen(want)), START + size);
		coop_plain_free(plain);
	}
	struct coop_plain *plain = coop_plain_new(flags, 0);
	for (size_t at = 0; at < size; at++)
		assert_int_equal(coop_plain_feed(plain, bytes + at, 1), 0);
	assert_int_equal(coop_plain_finish(plain), 0);
	assert_text(plain, want);
	coop_plain_free(plain);
}

static void check(unsigned flags, const char *bytes, const char *want)
{
	check_bytes(flags, bytes, strlen(bytes), want);
}

static void check_both(const char *bytes, const char *want)
{
	check(0, bytes, want);
	check(COOP_PLAIN_COLLAPSE, bytes, want);
}

static void test_text_is_unchanged(void **state)
{
	(void)state;
	check_both("", "");
	check_both("two\nlines\twith tabs\n", "two\nlines\twith tabs\n");
	check_both("gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x94\nend",
		   "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x94\nend");
}

static void test_escape_sequences_are_taken_out(void **state)
{
	(void)state;
	check_both("\x1b[1;31mred\x1b[0m", "red");
	check_both("\x1b[?25l\x1b[38:2:1:2:3mx\x1b[>c", "x");
	check_both("\x1b]0;title\x07shell", "shell");
	check_both("\x1b]8;;http://a\x1b\\link\x1b]8;;\x1b\\", "link");
	check_both("\x1bP1$r0m\x1b\\a\x1b_apc\x1b\\b\x1b^pm\x1b\\c\x1bXsos\x1b\\d", "abcd");
	check_both("\x1bkname\x1b\\x", "x");
	check_both("\x1b(B\x1b)0\x1b=\x1b>\x1b"
		   "7\x1b"
		   "8\x1bMx\x1b#8",
		   "x");
	check_both("a\x1b\x1b[1mb", "ab");
	check_both("\x1b]2;\xc3\x9c"
		   "ber\x07x",
		   "x");
}

static void test_control_characters_of_8_bits_count_as_characters_only(void **state)
{
	(void)state;
	check_both("\xc2\x9b"
		   "31mred\xc2\x9b"
		   "m",
		   "red");
	check_both("\xc2\x9d"
		   "0;t\xc2\x9cx\xc2\x90q\xc2\x9cy",
		   "xy");
	check_both("a\xc2\x85"
		   "b\xc2\x80",
		   "ab");
	check_both("a\x9b"
		   "31m",
		   "a" FFFD "31m");
}

static void test_other_control_characters_are_dropped(void **state)
{
	(void)state;
	check_both("a\x07\x01\x7f\x0b\x0c\x0e"
		   "b",
		   "ab");
	check_bytes(0, "a\0b", 3, "ab");
	check_bytes(COOP_PLAIN_COLLAPSE, "a\0b", 3, "ab");
}

static void test_a_broken_sequence_hides_nothing_for_long(void **state)
{
	char bytes[70000];

	(void)state;
	check_both("a\x1b[31\nb", "a\nb");
	check_both("a\x1b\nb", "a\nb");
	check_both("a\x1b]0;never ended\nb", "a\nb");
	check_both("a\x1b[31\x18"
		   "b\x1bPq\x1a"
		   "c",
		   "abc");
	check_both("a\x1b[3\xc3\xbc", "a\xc3\xbc");
	check_both("a\x1b]0;t\x1b[1mb", "ab");
	check_both("a\x1b[12", "a");
	check_both("a\x1b]0;t", "a");
	memset(bytes, 'x', sizeof bytes);
	memcpy(bytes, "\x1bP", 2);
	struct coop_plain *plain = view(0, bytes, sizeof bytes, 30000);
	size_t size;
	(void)coop_plain_text(plain, &size);
	assert_in_range(size, sizeof bytes - 65536 - 4, sizeof bytes - 65536 + 4);
	coop_plain_free(plain);
}

static void test_invalid_bytes_are_replaced(void **state)
{
	(void)state;
	check_both("a\xff\x80z", "a" FFFD FFFD "z");
	check_both("\xe2\x82|", FFFD "|");
	check_both("\xe2\x82\xe2\x82\xac", FFFD "\xe2\x82\xac");
	check_both("\xf0\x9f", FFFD);
	struct coop_plain *plain = view(0, "a\xe2\x82", 3, 0);
	assert_text(plain, "a");
	assert_true(coop_plain_valid(plain));
	assert_int_equal(coop_plain_offset(plain, 1), START + 1);
	assert_int_equal(coop_plain_finish(plain), 0);
	assert_text(plain, "a" FFFD);
	assert_false(coop_plain_valid(plain));
	coop_plain_free(plain);
}

static void test_line_ends_become_line_feeds(void **state)
{
	(void)state;
	check_both("a\r\nb\r\r\nc", "a\nb\nc");
	check(0, "a\rb\bc", "a\rb\bc");
	check(0, "\r", "\r");
	check(0, "a\r\r\r\r\r\r\r\r\r\r\nb", "a\r\r\r\r\r\r\r\r\nb");
}

static void test_p07_a_progress_line_collapses_to_what_was_seen_last(void **state)
{
	const unsigned flags = COOP_PLAIN_COLLAPSE;

	(void)state;
	check(flags, "10%\r50%\r100%\ndone\n", "100%\ndone\n");
	check(flags, "abcdef\rXY\n", "XYcdef\n");
	check(flags, "abcdef\rXY\x1b[K\n", "XY\n");
	check(flags, "\x1b[2K\r1/2\x1b[2K\r2/2\n", "2/2\n");
	check(flags, "abc\b\bX\n", "aXc\n");
	check(flags, "\b\babc\n", "abc\n");
	check(flags, "downloading\r           \rok\n", "ok\n");
	check(flags, "-\b\\\b|\b/\b-\b \bdone\n", "done\n");
	check(flags, "\xe2\x82\xac\xe2\x82\xac\rab\n", "ab\n");
	check(flags, "ab\r\xe2\x82\xac\n",
	      "\xe2\x82\xac"
	      "b\n");
	check(flags, "no end\rNO", "NO end");
}

static void test_p07_movements_within_a_line(void **state)
{
	const unsigned flags = COOP_PLAIN_COLLAPSE;

	(void)state;
	check(flags, "abc\x1b[2DX\n", "aXc\n");
	check(flags, "abc\x1b[1GX\x1b[CY\n", "XbY\n");
	check(flags, "a\x1b[3Cb\n", "a   b\n");
	check(flags, "abcdef\x1b[3G\x1b[2P\n", "abef\n");
	check(flags, "abcdef\x1b[3G\x1b[2X\n", "ab  ef\n");
	check(flags, "abcdef\x1b[3G\x1b[1K\n", "   def\n");
	check(flags, "abcdef\x1b[3G\x1b[J\n", "ab\n");
	check(flags, "abcdef\x1b[3G\x1b[?J\x1b[99P\n", "ab\n");
}

static void test_few_bytes_never_make_much_text(void **state)
{
	struct coop_plain *plain = view(COOP_PLAIN_COLLAPSE, "\x1b[9999999999Cx", 14, 5);
	size_t size;

	(void)state;
	(void)coop_plain_text(plain, &size);
	assert_int_equal(size, 201);
	coop_plain_free(plain);
}

static void test_a_long_line_counts_as_several(void **state)
{
	struct coop_plain *plain = coop_plain_new(COOP_PLAIN_COLLAPSE, 0);
	char bytes[1000];
	size_t size;

	(void)state;
	memset(bytes, 'x', sizeof bytes);
	for (int i = 0; i < 100; i++)
		assert_int_equal(coop_plain_feed(plain, bytes, sizeof bytes), 0);
	/* Back to 65536, where the second of them begins. */
	assert_int_equal(coop_plain_feed(plain, "\rend\x1b[K", 7), 0);
	const char *text = coop_plain_text(plain, &size);
	assert_int_equal(size, 65536 + 3);
	assert_memory_equal(text + 65536, "end", 3);
	assert_int_equal(coop_plain_offset(plain, 65535), 65535);
	assert_int_equal(coop_plain_offset(plain, 65536), 100001);
	coop_plain_free(plain);
}

static void test_every_byte_knows_where_it_came_from(void **state)
{
	static const char bytes[] = "\x1b[1mab\x1b[0m\xff"
				    "c\r\nd";
	/*                            0      4 5 6      10  11 12 13 14 */
	struct coop_plain *plain = view(0, bytes, sizeof bytes - 1, 7);

	(void)state;
	assert_text(plain, "ab" FFFD "c\nd");
	const uint64_t want[] = {4, 5, 10, 10, 10, 11, 13, 14, 15};
	for (size_t at = 0; at < sizeof want / sizeof *want; at++)
		assert_int_equal(coop_plain_offset(plain, at), START + want[at]);
	coop_plain_consume(plain, 3);
	for (size_t at = 3; at < sizeof want / sizeof *want; at++)
		assert_int_equal(coop_plain_offset(plain, at - 3), START + want[at]);
	coop_plain_consume(plain, 100);
	assert_text(plain, "");
	assert_int_equal(coop_plain_offset(plain, 0), START + 15);
	assert_int_equal(coop_plain_feed(plain, "e\x1b[1", 4), 0);
	assert_text(plain, "e");
	assert_int_equal(coop_plain_offset(plain, 0), START + 15);
	/* What is held back lies behind the end. */
	assert_int_equal(coop_plain_offset(plain, 1), START + 16);
	coop_plain_free(plain);
}

static void test_offsets_of_an_overwritten_line(void **state)
{
	struct coop_plain *plain = view(COOP_PLAIN_COLLAPSE, "x\nabc\rZ\n!", 9, 4);
	const uint64_t want[] = {0, 1, 6, 3, 4, 7, 8, 9};

	(void)state;
	assert_text(plain, "x\nZbc\n!");
	for (size_t at = 0; at < sizeof want / sizeof *want; at++)
		assert_int_equal(coop_plain_offset(plain, at), START + want[at]);
	coop_plain_free(plain);
}

static void test_the_present_line_is_part_of_the_text_and_may_change(void **state)
{
	struct coop_plain *plain = view(COOP_PLAIN_COLLAPSE, "a\n50%", 5, 5);

	(void)state;
	assert_text(plain, "a\n50%");
	assert_int_equal(coop_plain_feed(plain, "\r99%", 4), 0);
	assert_text(plain, "a\n99%");
	/* Consuming a part of it fixes the rest. */
	coop_plain_consume(plain, 4);
	assert_text(plain, "%");
	assert_int_equal(coop_plain_feed(plain, "\rnew", 4), 0);
	assert_text(plain, "%new");
	coop_plain_free(plain);
}

static void test_a_long_string_is_held_back_only_so_far(void **state)
{
	char bytes[COOP_PLAIN_HELD_MAX + 100];

	(void)state;
	memset(bytes, 'x', sizeof bytes);
	memcpy(bytes, "a\x1bP", 3);
	struct coop_plain *plain = view(0, bytes, 1000, 500);
	assert_int_equal(coop_plain_offset(plain, 1), START + 1);
	assert_int_equal(coop_plain_feed(plain, bytes + 1000, sizeof bytes - 1000), 0);
	assert_int_equal(coop_plain_offset(plain, 1), START + sizeof bytes);
	assert_int_equal(coop_plain_feed(plain, "\x1b\\b", 3), 0);
	assert_text(plain, "ab");
	coop_plain_free(plain);
}

/* Any bytes at all: valid text, offsets that grow within a line that nothing overwrites, the same
 * however cut. */
static void test_random_bytes_give_the_same_text_in_every_cut(void **state)
{
	static const char *const palette[] = {"a",    "bc",       "\n",     "\r",   "\b",   "\x1b",
					      "[",    "\x1b[K",   "\x1b[C", "]",    "\x07", "\xc2",
					      "\x9b", "\xe2\x82", "\xac",   "\xff", " ",    "3",
					      "m",    ";",        "\x1b\\", "\t",   "P",    "\x18"};
	uint32_t seed = 11;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		char bytes[128] = "", want[512];
		size_t size;
		for (int i = 0; i < 20; i++) {
			seed = seed * 1664525u + 1013904223u;
			size_t used = strlen(bytes);
			(void)snprintf(bytes + used, sizeof bytes - used, "%s",
				       palette[(seed >> 16) % (sizeof palette / sizeof *palette)]);
		}
		unsigned flags = round & 1 ? COOP_PLAIN_COLLAPSE : 0;
		struct coop_plain *plain = view(flags, bytes, strlen(bytes), 0);
		assert_int_equal(coop_plain_finish(plain), 0);
		const char *text = coop_plain_text(plain, &size);
		assert_true(size < sizeof want);
		memcpy(want, text, size);
		want[size] = 0;
		for (size_t at = 0; at < size;) {
			size_t length = coop_utf8_char((uint8_t *)want + at, size - at);
			assert_true(length > 0);
			at += length;
		}
		coop_plain_free(plain);
		check(flags, bytes, want);
	}
}

static void test_want_of_memory_is_told_and_lasts(void **state)
{
	static const char bytes[] = "abc\rX\n\x1b[1mgr\xc3\xbc\n50%\r60%\n";

	(void)state;
	for (int n = 1; n < 12; n++) {
		char fault[32];
		(void)snprintf(fault, sizeof fault, "alloc:%d", n);
		assert_int_equal(setenv("COOP_FAULT", fault, 1), 0);
		coop_mem_init();
		struct coop_plain *plain = coop_plain_new(COOP_PLAIN_COLLAPSE, 0);
		if (plain) {
			int r = 0;
			for (size_t at = 0; at < sizeof bytes - 1; at++) {
				int now = coop_plain_feed(plain, bytes + at, 1);
				assert_true(r == 0 || now < 0);
				r = now;
			}
			if (r == 0)
				assert_text(plain, "Xbc\ngr\xc3\xbc\n60%\n");
		}
		coop_plain_free(plain);
	}
	assert_int_equal(unsetenv("COOP_FAULT"), 0);
	coop_mem_init();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text_is_unchanged),
		cmocka_unit_test(test_escape_sequences_are_taken_out),
		cmocka_unit_test(test_control_characters_of_8_bits_count_as_characters_only),
		cmocka_unit_test(test_other_control_characters_are_dropped),
		cmocka_unit_test(test_a_broken_sequence_hides_nothing_for_long),
		cmocka_unit_test(test_invalid_bytes_are_replaced),
		cmocka_unit_test(test_line_ends_become_line_feeds),
		cmocka_unit_test(test_p07_a_progress_line_collapses_to_what_was_seen_last),
		cmocka_unit_test(test_p07_movements_within_a_line),
		cmocka_unit_test(test_few_bytes_never_make_much_text),
		cmocka_unit_test(test_a_long_line_counts_as_several),
		cmocka_unit_test(test_every_byte_knows_where_it_came_from),
		cmocka_unit_test(test_offsets_of_an_overwritten_line),
		cmocka_unit_test(test_the_present_line_is_part_of_the_text_and_may_change),
		cmocka_unit_test(test_a_long_string_is_held_back_only_so_far),
		cmocka_unit_test(test_random_bytes_give_the_same_text_in_every_cut),
		cmocka_unit_test(test_want_of_memory_is_told_and_lasts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
