/* Base64: what the encoder writes is read back, and nothing else is. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"

static void both_ways(void **state)
{
	uint8_t bytes[300], back[300];
	char text[400];
	size_t size;

	(void)state;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
	for (size_t n = 0; n <= sizeof bytes; n++) {
		size_t length = coop_base64_length(n);
		coop_base64_encode(bytes, n, text);
		assert_true(coop_base64_room(length) >= n && coop_base64_room(length) <= n + 2);
		memset(back, 0, sizeof back);
		assert_int_equal(coop_base64_decode(text, length, back, &size), 0);
		assert_int_equal(size, n);
		assert_memory_equal(back, bytes, n);
	}
}

static void known(void **state)
{
	static const struct {
		const char *text, *bytes;
	} rows[] = {{"", ""},        {"Zg==", "f"},        {"Zm8=", "fo"},
		    {"Zm9v", "foo"}, {"Zm9vYg==", "foob"}, {"/+8/", "\xff\xef\x3f"}};
	char back[16];
	size_t size;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		assert_int_equal(
			coop_base64_decode(rows[i].text, strlen(rows[i].text), back, &size), 0);
		assert_int_equal(size, strlen(rows[i].bytes));
		assert_memory_equal(back, rows[i].bytes, size);
	}
}

static void refused(void **state)
{
	/* Too short, padding in the wrong place or alone, other alphabets, white space, bits that get lost. */
	static const char *const texts[] = {"Z",
					    "Zg",
					    "Zg=",
					    "Zm9v=",
					    "=",
					    "====",
					    "Z===",
					    "Zg==Zg==",
					    "Z=g=",
					    "Zm9v\n",
					    "Zm 9",
					    "Zm9-",
					    "Zm_v",
					    "Zh==",
					    "Zm9=",
					    ("\xc3\xa4"
					     "aa")};
	char back[16];
	size_t size;

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		if (coop_base64_decode(texts[i], strlen(texts[i]), back, &size) != -EINVAL)
			fail_msg("taken: %s", texts[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ways),
		cmocka_unit_test(known),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
