/* UTF-8: which bytes are a character, and which may still become one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text/utf8.h"

static size_t length(const char *bytes)
{
	return coop_utf8_char((const uint8_t *)bytes, strlen(bytes));
}

static size_t unfinished(const char *bytes)
{
	return coop_utf8_unfinished((const uint8_t *)bytes, strlen(bytes));
}

static void characters(void **state)
{
	assert_int_equal(length("a"), 1);
	assert_int_equal(length("\xc3\xa4"), 2);
	assert_int_equal(length("\xe2\x82\xac"), 3);
	assert_int_equal(length("\xf0\x9f\x98\x80"), 4);
	assert_int_equal(length("\xf4\x8f\xbf\xbf"), 4);
	assert_int_equal(coop_utf8_char((const uint8_t *)"", 1), 1);
	assert_int_equal(coop_utf8_char((const uint8_t *)"a", 0), 0);
}

static void not_characters(void **state)
{
	static const char *const bad[] = {
		"\x80",             /* a continuation on its own */
		"\xc0\xaf",         /* overlong */
		"\xc1\xbf",         /* overlong */
		"\xe0\x80\xaf",     /* overlong */
		"\xf0\x80\x80\xaf", /* overlong */
		"\xed\xa0\x80",     /* a surrogate */
		"\xf4\x90\x80\x80", /* above U+10FFFF */
		"\xf5\x80\x80\x80", /* above U+10FFFF */
		"\xff",             /* never */
		"\xc3(",            /* broken off by another character */
		"\xe2\x82(",        /* likewise */
		"\xe2\x82",         /* cut short */
	};

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(length(bad[i]), 0);
}

static void cut_short(void **state)
{
	assert_int_equal(unfinished(""), 0);
	assert_int_equal(unfinished("abc"), 0);
	assert_int_equal(unfinished("abc\xc3\xa4"), 0);
	assert_int_equal(unfinished("abc\xc3"), 1);
	assert_int_equal(unfinished("abc\xe2"), 1);
	assert_int_equal(unfinished("abc\xe2\x82"), 2);
	assert_int_equal(unfinished("\xf0\x9f\x98"), 3);
	assert_int_equal(unfinished("\xf0\x9f\x98\x80"), 0);
}

/* Waiting for the rest of what cannot become a character would hold bytes back for ever. */
static void hopeless(void **state)
{
	assert_int_equal(unfinished("abc\xff"), 0);
	assert_int_equal(unfinished("abc\xed\xa0"), 0);
	assert_int_equal(unfinished("abc\xe0\x80"), 0);
	assert_int_equal(unfinished("\x80\x80\x80\x80"), 0);
	assert_int_equal(unfinished("\xc0"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(characters),
		cmocka_unit_test(not_characters),
		cmocka_unit_test(cut_short),
		cmocka_unit_test(hopeless),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
