/* The JSON writer: what it writes is read back by a parser of another make, whatever the strings
 * hold. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json/jsonw.h"
#include "base/mem.h"

static json_t *parse(const struct coop_buf *buf)
{
	return json_loadb((const char *)coop_buf_front(buf), coop_buf_size(buf), 0, NULL);
}

static void shapes(void **state)
{
	static const char expected[] =
		"{\"a\":\"x\",\"b\":[1,{},[],null,true],\"c\":{\"d\":-9223372036854775808},"
		"\"e\":18446744073709551615,\"f\":1.5,\"g\":{\"h\":0},\"i\":null}";
	struct coop_buf buf = {0};
	struct coop_jsonw w = {.out = &buf};

	coop_jsonw_begin(&w, NULL);
	coop_jsonw_string(&w, "a", "x");
	coop_jsonw_array(&w, "b");
	coop_jsonw_int(&w, NULL, 1);
	coop_jsonw_begin(&w, NULL);
	coop_jsonw_end(&w);
	coop_jsonw_array(&w, NULL);
	coop_jsonw_array_end(&w);
	coop_jsonw_null(&w, NULL);
	coop_jsonw_bool(&w, NULL, true);
	coop_jsonw_array_end(&w);
	coop_jsonw_begin(&w, "c");
	coop_jsonw_int(&w, "d", INT64_MIN);
	coop_jsonw_end(&w);
	coop_jsonw_uint(&w, "e", UINT64_MAX);
	coop_jsonw_fixed(&w, "f", 1.5);
	coop_jsonw_raw(&w, "g", "{\"h\":0}");
	coop_jsonw_string(&w, "i", NULL);
	coop_jsonw_end(&w);
	assert_false(w.failed);
	assert_int_equal(coop_buf_size(&buf), sizeof expected - 1);
	assert_memory_equal(coop_buf_front(&buf), expected, sizeof expected - 1);
	coop_buf_clear(&buf);
}

static void strings(void **state)
{
	static const struct {
		const char *text, *read;
	} cases[] = {
		{"plain", "plain"},
		{"\"\\/\b\f\n\r\t\x01\x1f\x7f", "\"\\/\b\f\n\r\t\x01\x1f\x7f"},
		{"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
		{"a\xff"
		 "b",
		 "a\xef\xbf\xbd"
		 "b"},
		{"cut \xe2", "cut \xef\xbf\xbd"},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct coop_buf buf = {0};
		struct coop_jsonw w = {.out = &buf};
		coop_jsonw_array(&w, NULL);
		coop_jsonw_string(&w, NULL, cases[i].text);
		coop_jsonw_array_end(&w);
		json_t *back = parse(&buf);
		assert_non_null(back);
		assert_string_equal(json_string_value(json_array_get(back, 0)), cases[i].read);
		json_decref(back);
		coop_buf_clear(&buf);
	}
}

/* Text is looked through in steps: how a character is written does not depend on where it
 * stands. */
static void places(void **state)
{
	static const struct {
		char byte;
		const char *written;
	} cases[] = {{'"', "\\\""},     {'\\', "\\\\"},    {'\n', "\\n"},
		     {0x1f, "\\u001f"}, {0x7f, "\\u007f"}, {'~', "~"}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		for (size_t at = 0; at < 20; at++) {
			char text[21] = "aaaaaaaaaaaaaaaaaaaa", expected[64];
			struct coop_buf buf = {0};
			struct coop_jsonw w = {.out = &buf};
			text[at] = cases[i].byte;
			int size = snprintf(expected, sizeof expected, "\"%.*s%s%s\"", (int)at,
					    text, cases[i].written, text + at + 1);
			coop_jsonw_string(&w, NULL, text);
			assert_int_equal(coop_buf_size(&buf), (size_t)size);
			assert_memory_equal(coop_buf_front(&buf), expected, (size_t)size);
			coop_buf_clear(&buf);
		}
	}
}

/* A member's name is text like any other: what could end it is escaped, whoever it comes from. */
static void names(void **state)
{
	static const char *const odd[] = {"",
					  "plain",
					  "a\"b",
					  "\\",
					  "x\":\"y\",\"z",
					  "\n\t\x01",
					  "\x7f",
					  "\xc3\xa4\xe2\x82\xac"};
	const size_t count = sizeof odd / sizeof odd[0];
	struct coop_buf buf = {0};
	struct coop_jsonw w = {.out = &buf};

	coop_jsonw_begin(&w, NULL);
	for (size_t i = 0; i < count; i++)
		coop_jsonw_int(&w, odd[i], (int64_t)i);
	coop_jsonw_begin(&w, "in\"side");
	coop_jsonw_end(&w);
	coop_jsonw_end(&w);
	json_t *back = parse(&buf);
	assert_int_equal(json_object_size(back), count + 1);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(json_integer_value(json_object_get(back, odd[i])), i);
	assert_true(json_is_object(json_object_get(back, "in\"side")));
	json_decref(back);
	coop_buf_clear(&buf);
}

static void times(void **state)
{
	struct coop_buf buf = {0};
	struct coop_jsonw w = {.out = &buf};

	coop_jsonw_array(&w, NULL);
	coop_jsonw_time(&w, NULL, 0);
	coop_jsonw_time(&w, NULL, INT64_C(1767323045678));
	coop_jsonw_array_end(&w);
	json_t *back = parse(&buf);
	assert_true(json_is_null(json_array_get(back, 0)));
	assert_string_equal(json_string_value(json_array_get(back, 1)), "2026-01-02T03:04:05.678Z");
	json_decref(back);
	coop_buf_clear(&buf);
}

static void no_memory(void **state)
{
	struct coop_buf buf = {0};
	struct coop_jsonw w = {.out = &buf};

	(void)setenv("COOP_FAULT", "alloc:1:1", 1);
	coop_mem_init();
	coop_jsonw_begin(&w, NULL);
	coop_jsonw_string(&w, "name", "value");
	coop_jsonw_end(&w);
	(void)unsetenv("COOP_FAULT");
	coop_mem_init();
	assert_true(w.failed);
	coop_buf_clear(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shapes), cmocka_unit_test(strings), cmocka_unit_test(places),
		cmocka_unit_test(names),  cmocka_unit_test(times),   cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
