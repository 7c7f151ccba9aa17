/* The text view of bytes (B-031): nothing is split, nothing invalid gets through, offsets count
 * original bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text/utf8.h"
#include "client/text.h"

#define FFFD "\xef\xbf\xbd"

struct expected {
	const char *bytes;
	bool more;
	const char *text;
	size_t consumed;
	bool valid;
};

static void check(const struct expected *want)
{
	struct coop_text got;

	assert_int_equal(coop_text_view(want->bytes, strlen(want->bytes), want->more, &got), 0);
	assert_string_equal(got.text, want->text);
	assert_int_equal(got.size, strlen(want->text));
	assert_int_equal(got.consumed, want->consumed);
	assert_int_equal(got.utf8_valid, want->valid);
	coop_text_clear(&got);
	assert_null(got.text);
}

static void test_valid_text_is_unchanged(void **state)
{
	(void)state;
	check(&(struct expected){"", true, "", 0, true});
	check(&(struct expected){"plain ascii, more than eight", false,
				 "plain ascii, more than eight", 28, true});
	check(&(struct expected){"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x94", false,
				 "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x90\x94", 15, true});
}

static void test_unfinished_character_is_held_back(void **state)
{
	(void)state;
	check(&(struct expected){"a\xe2\x82", true, "a", 1, true});
	check(&(struct expected){"a\xe2", true, "a", 1, true});
	check(&(struct expected){"\xf0\x9f\x90", true, "", 0, true});
	check(&(struct expected){"12345678\xc3", true, "12345678", 8, true});
	/* At the end of the stream nothing will come any more. */
	check(&(struct expected){"a\xe2\x82", false, "a" FFFD, 3, false});
	check(&(struct expected){"\xf0\x9f\x90", false, FFFD, 3, false});
}

static void test_invalid_bytes_are_replaced(void **state)
{
	(void)state;
	check(&(struct expected){"\xff", true, FFFD, 1, false});
	check(&(struct expected){"a\x80\x80z", true, "a" FFFD FFFD "z", 4, false});
	/* A beginning that breaks off counts once, and what breaks it is kept. */
	check(&(struct expected){"\xe2\x82|", true, FFFD "|", 3, false});
	check(&(struct expected){"\xf0\x9f\x90|", true, FFFD "|", 4, false});
	check(&(struct expected){"\xe2\x82\xe2\x82\xac", true, FFFD "\xe2\x82\xac", 5, false});
	/* Overlong, surrogate, above U+10FFFF: no byte of these could begin a character. */
	check(&(struct expected){"\xc0\xaf", true, FFFD FFFD, 2, false});
	check(&(struct expected){"\xed\xa0\x80", true, FFFD FFFD FFFD, 3, false});
	check(&(struct expected){"\xf4\x90\x80\x80", true, FFFD FFFD FFFD FFFD, 4, false});
	check(&(struct expected){"\xf8\x88", false, FFFD FFFD, 2, false});
	/* Invalid before, unfinished behind. */
	check(&(struct expected){"\xff"
				 "a\xc3",
				 true, FFFD "a", 2, false});
}

static void test_bytes_of_value_zero_are_kept(void **state)
{
	struct coop_text got;

	(void)state;
	assert_int_equal(coop_text_view("a\0b", 3, true, &got), 0);
	assert_int_equal(got.size, 3);
	assert_memory_equal(got.text, "a\0b", 4);
	assert_true(got.utf8_valid);
	coop_text_clear(&got);
}

/* Reads `bytes` in windows of `step`, as a reader with a cursor does, and puts the texts
 * together. */
static void read_in_steps(const uint8_t *bytes, size_t size, size_t step, char *ret_text)
{
	size_t cursor = 0, written = 0;

	while (cursor < size) {
		size_t window = size - cursor < step ? size - cursor : step;
		struct coop_text part;
		assert_int_equal(
			coop_text_view(bytes + cursor, window, cursor + window < size, &part), 0);
		assert_true(part.consumed > 0);
		memcpy(ret_text + written, part.text, part.size);
		written += part.size;
		cursor += part.consumed;
		coop_text_clear(&part);
	}
	ret_text[written] = 0;
}

static void test_reading_in_pieces_changes_nothing(void **state)
{
	static const char bytes[] =
		"a\xc3\xbc\xe2\x82\xac\xf0\x9f\x90\x94 \xff|\xe2\x82|\xed\xa0\x80"
		"\xf0\x9f\x90\x94\xf0\x9f\x90\x94\xe2\x82\xac end\xf0\x9f";
	size_t size = sizeof bytes - 1;
	char whole[256], pieces[256];

	(void)state;
	read_in_steps((const uint8_t *)bytes, size, size, whole);
	for (size_t step = 4; step < size; step++) {
		read_in_steps((const uint8_t *)bytes, size, step, pieces);
		assert_string_equal(pieces, whole);
	}
}

/* Any bytes at all give valid text that accounts for every byte. */
static void test_random_bytes_give_valid_text(void **state)
{
	static const uint8_t palette[] = {'a',  0x80, 0xbf, 0xc2, 0xc3, 0xe0, 0xe2, 0xed,
					  0xf0, 0xf4, 0x9f, 0xa0, 0x90, 0xff, 0};
	uint32_t seed = 7;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		uint8_t bytes[24];
		struct coop_text got;
		size_t at = 0;
		for (size_t i = 0; i < sizeof bytes; i++) {
			seed = seed * 1664525u + 1013904223u;
			bytes[i] = palette[(seed >> 16) % sizeof palette];
		}
		size_t size = (seed >> 8) % sizeof bytes;
		assert_int_equal(coop_text_view(bytes, size, round & 1, &got), 0);
		assert_true(got.consumed <= size && size - got.consumed <= 3);
		while (at < got.size) {
			size_t length = coop_utf8_char((uint8_t *)got.text + at, got.size - at);
			assert_true(length > 0);
			at += length;
		}
		coop_text_clear(&got);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_valid_text_is_unchanged),
		cmocka_unit_test(test_unfinished_character_is_held_back),
		cmocka_unit_test(test_invalid_bytes_are_replaced),
		cmocka_unit_test(test_bytes_of_value_zero_are_kept),
		cmocka_unit_test(test_reading_in_pieces_changes_nothing),
		cmocka_unit_test(test_random_bytes_give_valid_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
