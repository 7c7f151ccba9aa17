/* Output as JSON lines: text that is never cut inside a character, base64 for the rest, and not one byte lost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "doors/cli/base64.h"
#include "doors/cli/encoder.h"

static char lines[4096];

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
	assert_string_equal(
		lines,
		"{\"type\":\"output\",\"stream\":\"stdout\",\"offset\":0,\"text\":\"a\\n\"}\n");
	cli_encoder_flush(&encoder);
	assert_string_equal(
		lines,
		"{\"type\":\"output\",\"stream\":\"stdout\",\"offset\":0,\"text\":\"a\\n\"}\n");
}

/* A euro sign in three pieces, with the other stream in between. */
static void split_character(void **state)
{
	struct cli_encoder encoder = fresh();
	feed(&encoder, COOP_STDOUT, 0, "x\xe2", 2);
	feed(&encoder, COOP_STDERR, 0, "e", 1);
	feed(&encoder, COOP_STDOUT, 2, "\x82", 1);
	feed(&encoder, COOP_STDOUT, 3, "\xacy", 2);
	assert_string_equal(
		lines, "{\"type\":\"output\",\"stream\":\"stdout\",\"offset\":0,\"text\":\"x\"}\n"
		       "{\"type\":\"output\",\"stream\":\"stderr\",\"offset\":0,\"text\":\"e\"}\n"
		       "{\"type\":\"output\",\"stream\":\"stdout\",\"offset\":1,\"text\":"
		       "\"\xe2\x82\xacy\"}\n");
}

static void never_finished(void **state)
{
	struct cli_encoder encoder = fresh();
	feed(&encoder, COOP_PTY, 7, "\xe2\x82", 2);
	assert_string_equal(lines, "");
	cli_encoder_flush(&encoder);
	assert_string_equal(
		lines,
		"{\"type\":\"output\",\"stream\":\"pty\",\"offset\":7,\"base64\":\"4oI=\"}\n");
}

/* What followed was lost: the beginning cannot be completed by bytes from somewhere else. */
static void gap_inside_character(void **state)
{
	struct cli_encoder encoder = fresh();
	feed(&encoder, COOP_STDOUT, 0, "\xe2", 1);
	feed(&encoder, COOP_STDOUT, 10, "z", 1);
	assert_string_equal(
		lines,
		"{\"type\":\"output\",\"stream\":\"stdout\",\"offset\":0,\"base64\":\"4g==\"}\n"
		"{\"type\":\"output\",\"stream\":\"stdout\",\"offset\":10,\"text\":\"z\"}\n");
}

static void binary(void **state)
{
	struct cli_encoder encoder = fresh();
	feed(&encoder, COOP_STDOUT, 0, "\xff\x00\x01", 3);
	feed(&encoder, COOP_STDOUT, 3, "a\0b", 3);
	assert_string_equal(
		lines,
		"{\"type\":\"output\",\"stream\":\"stdout\",\"offset\":0,\"base64\":\"/wAB\"}\n"
		"{\"type\":\"output\",\"stream\":\"stdout\",\"offset\":3,\"text\":\"a\\u0000b\"}"
		"\n");
}

/* The text before the first wrong byte is still text. */
static void text_then_binary(void **state)
{
	struct cli_encoder encoder = fresh();
	feed(&encoder, COOP_STDOUT, 5,
	     "a\n\xff"
	     "b",
	     4);
	assert_string_equal(
		lines,
		"{\"type\":\"output\",\"stream\":\"stdout\",\"offset\":5,\"text\":\"a\\n\"}\n"
		"{\"type\":\"output\",\"stream\":\"stdout\",\"offset\":7,\"base64\":\"/2I=\"}\n");
}

static void base64_lengths(void **state)
{
	static const char *const texts[] = {"",         "Zg==",     "Zm8=",    "Zm9v",
					    "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
	for (size_t size = 0; size <= 6; size++) {
		char text[16] = {0};
		cli_base64_encode("foobar", size, text);
		assert_string_equal(text, texts[size]);
		assert_int_equal(cli_base64_length(size), strlen(texts[size]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_text),     cmocka_unit_test(split_character),
		cmocka_unit_test(never_finished), cmocka_unit_test(gap_inside_character),
		cmocka_unit_test(binary),         cmocka_unit_test(text_then_binary),
		cmocka_unit_test(base64_lengths),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
