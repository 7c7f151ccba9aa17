/* Output as JSON lines: text that is never cut inside a character, base64 or U+FFFD for the rest,
 * and not one byte lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text/base64.h"
#include "doors/cli/terminal/encoder.h"

static char lines[4096];

/* A line of output, up to its content. */
#define HEAD(stream, offset) \
	"{\"type\":\"output\",\"stream\":\"" stream "\",\"offset\":" #offset ","
#define TEXT(stream, offset, text) \
	HEAD(stream, offset) "\"text\":\"" text "\",\"utf8_valid\":true}\n"
#define BASE64(stream, offset, text) \
	HEAD(stream, offset) "\"base64\":\"" text "\",\"utf8_valid\":false}\n"
#define VIEW(stream, offset, next, text, valid)                               \
	HEAD(stream, offset)                                                  \
	"\"text\":\"" text "\",\"utf8_valid\":" #valid ",\"next\":" #next "}" \
	"\n"

static void emit(void *user, const char *line, size_t size)
{
	assert_true(strlen(lines) + size < sizeof(lines));
	strncat(lines, line, size);
}

static struct cli_encoder fresh(void)
{
	lines[0] = '\0';
	return (struct cli_encoder){.emit = emit};
}

static void feed(struct cli_encoder *encoder, enum coop_stream stream, uint64_t offset,
		 const char *bytes, size_t size)
{
	const struct coop_chunk chunk = {
		.stream = stream, .offset = offset, .data = bytes, .size = size};
	cli_encoder_feed(encoder, &chunk, NULL);
}

static void whole_text(void **state)
{
	struct cli_encoder encoder = fresh();
	feed(&encoder, COOP_STDOUT, 0, "a\n", 2);
	assert_string_equal(lines, TEXT("stdout", 0, "a\\n"));
	cli_encoder_flush(&encoder, NULL);
	assert_string_equal(lines, TEXT("stdout", 0, "a\\n"));
}

/* A euro sign in three pieces, with the other stream in between. */
static void split_character(void **state)
{
	struct cli_encoder encoder = fresh();
	feed(&encoder, COOP_STDOUT, 0, "x\xe2", 2);
	feed(&encoder, COOP_STDERR, 0, "e", 1);
	feed(&encoder, COOP_STDOUT, 2, "\x82", 1);
	feed(&encoder, COOP_STDOUT, 3, "\xacy", 2);
	assert_string_equal(lines, TEXT("stdout", 0, "x") TEXT("stderr", 0, "e")
					   TEXT("stdout", 1, "\xe2\x82\xacy"));
}

static void never_finished(void **state)
{
	struct cli_encoder encoder = fresh();
	feed(&encoder, COOP_PTY, 7, "\xe2\x82", 2);
	assert_string_equal(lines, "");
	cli_encoder_flush(&encoder, NULL);
	assert_string_equal(lines, BASE64("pty", 7, "4oI="));
}

/* What followed was lost: the beginning cannot be completed by bytes from somewhere else. */
static void gap_inside_character(void **state)
{
	struct cli_encoder encoder = fresh();
	feed(&encoder, COOP_STDOUT, 0, "\xe2", 1);
	feed(&encoder, COOP_STDOUT, 10, "z", 1);
	assert_string_equal(lines, BASE64("stdout", 0, "4g==") TEXT("stdout", 10, "z"));
}

static void binary(void **state)
{
	struct cli_encoder encoder = fresh();
	feed(&encoder, COOP_STDOUT, 0, "\xff\x00\x01", 3);
	feed(&encoder, COOP_STDOUT, 3, "a\0b", 3);
	assert_string_equal(lines, BASE64("stdout", 0, "/wAB") TEXT("stdout", 3, "a\\u0000b"));
}

/* The text before the first wrong byte is still text. */
static void text_then_binary(void **state)
{
	struct cli_encoder encoder = fresh();
	feed(&encoder, COOP_STDOUT, 5,
	     "a\n\xff"
	     "b",
	     4);
	assert_string_equal(lines, TEXT("stdout", 5, "a\\n") BASE64("stdout", 7, "/2I="));
}

/* As text: one line for a piece, and `next` counts the bytes and not the replacement. */
static void replaced(void **state)
{
	struct cli_encoder encoder = fresh();
	encoder.text = true;
	feed(&encoder, COOP_STDOUT, 5, "a\xff\0\xe2", 4);
	feed(&encoder, COOP_STDOUT, 9, "\x82\xac", 2);
	assert_string_equal(lines, VIEW("stdout", 5, 8, "a\xef\xbf\xbd\\u0000", false)
					   VIEW("stdout", 8, 11, "\xe2\x82\xac", true));
}

static void replaced_after_gap(void **state)
{
	struct cli_encoder encoder = fresh();
	encoder.text = true;
	feed(&encoder, COOP_STDOUT, 0, "\xe2\x82", 2);
	feed(&encoder, COOP_STDOUT, 10, "z", 1);
	assert_string_equal(lines, VIEW("stdout", 0, 2, "\xef\xbf\xbd", false)
					   VIEW("stdout", 10, 11, "z", true));
}

/* Half a character is held back for good unless its stream has ended. */
static void held_back(void **state)
{
	struct cli_encoder encoder = fresh();
	json_t *record = json_pack("{s:{s:{s:b}, s:{s:b}}}", "streams", "stdout", "eof", 0,
				   "stderr", "eof", 1);
	encoder.text = true;
	feed(&encoder, COOP_STDOUT, 0, "a\xe2\x82", 3);
	feed(&encoder, COOP_STDERR, 0, "\xc3", 1);
	cli_encoder_flush(&encoder, record);
	assert_string_equal(lines, VIEW("stdout", 0, 1, "a", true)
					   VIEW("stderr", 0, 1, "\xef\xbf\xbd", false));
	json_decref(record);
}

static void base64_lengths(void **state)
{
	static const char *const texts[] = {"",         "Zg==",     "Zm8=",    "Zm9v",
					    "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
	for (size_t size = 0; size <= 6; size++) {
		char text[16] = {0};
		coop_base64_encode("foobar", size, text);
		assert_string_equal(text, texts[size]);
		assert_int_equal(coop_base64_length(size), strlen(texts[size]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_text),     cmocka_unit_test(split_character),
		cmocka_unit_test(never_finished), cmocka_unit_test(gap_inside_character),
		cmocka_unit_test(binary),         cmocka_unit_test(text_then_binary),
		cmocka_unit_test(replaced),       cmocka_unit_test(replaced_after_gap),
		cmocka_unit_test(held_back),      cmocka_unit_test(base64_lengths),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
