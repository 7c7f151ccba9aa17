/* Text of others before it is printed: nothing in it reaches a terminal as an order, and ordinary
 * letters stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "doors/cli/clean.h"

static const struct {
	const char *text, *clean;
} rows[] = {
	{"", ""},
	{"plain", "plain"},
	{"\x1b]0;title\x07x", "?]0;title?x"},
	{"a\nb\tc\r", "a?b?c?"},
	{"\x7f", "?"},
	{"\xc2\x9b\x33\x31m", "?31m"}, /* CSI in one character of the second set */
	{"\xc2\x80\xc2\x9f", "??"},
	{"\xc2\xa0\xc3\xa9\xe2\x82\xac", "\xc2\xa0\xc3\xa9\xe2\x82\xac"},
	{"\xe2\x80\xae"
	 "fdp.exe",
	 "?fdp.exe"}, /* right to left from here */
	{"\xe2\x81\xa6x\xe2\x81\xa9", "?x?"},
	{"\xe2\x80\xa8", "?"},
	{"\x9b"
	 "31m\xff",
	 "?31m?"}, /* no UTF-8 at all */
	{"\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"},
	{"\xe2\x82", "??"},
};

static void texts(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[64];
		(void)snprintf(text, sizeof(text), "%s", rows[i].text);
		cli_clean(text);
		assert_string_equal(text, rows[i].clean);
	}
}

static void values(void **state)
{
	json_t *value = json_pack("{s:s, s:[s, {s:s}], s:i}", "a", "x\x1b[2J", "b", "y\n", "c",
				  "\xc2\x9b", "d", 7);
	cli_clean_json(value);
	char *text = json_dumps(value, JSON_COMPACT);
	assert_string_equal(text, "{\"a\":\"x?[2J\",\"b\":[\"y?\",{\"c\":\"?\"}],\"d\":7}");
	free(text);
	json_decref(value);
}

/* As JSON the text stays what it is, and no byte of it is one that a terminal obeys. */
static void dumps(void **state)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *value = json_string(rows[i].text);
		if (!value)
			continue;
		char *text = cli_clean_dump(value, JSON_ENCODE_ANY), *safe = strdup(text);
		cli_clean(safe);
		assert_string_equal(safe, text);
		json_t *back = json_loads(text, JSON_DECODE_ANY, NULL);
		assert_string_equal(json_string_value(back), rows[i].text);
		json_decref(back);
		json_decref(value);
		free(text);
		free(safe);
	}
	json_t *value = json_pack("{s:[i, s]}", "a", 1, "\xc2\x9b\x7f");
	char *text = cli_clean_dump(value, JSON_INDENT(1));
	assert_string_equal(text, "{\n \"a\": [\n  1,\n  \"\\u009b\\u007f\"\n ]\n}");
	free(text);
	json_decref(value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts),
		cmocka_unit_test(values),
		cmocka_unit_test(dumps),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
