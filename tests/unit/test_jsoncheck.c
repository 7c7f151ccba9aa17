/* Whether a text is a JSON object: as jansson sees it, but for numbers that are too large for it.
 */
#include "base/json/jsoncheck.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const objects[] = {
	"{}",
	" {\"a\" : 1 , \"b\":[true,false,null,-0.5e+3,0,\"\"]}\r\n\t",
	"{\"a\":{\"b\":[[],{}]},\"a\":2}",
	"{\"\\ud83d\\ude00 \\\"\\\\\\/\\b\":\"\xc3\xa4 \\u0000\"}",
};

static const char *const others[] = {
	"",
	" ",
	"[1]",
	"1",
	"\"x\"",
	"{",
	"{}}",
	"{} x",
	"{\"a\":1} {}",
	"{a:1}",
	"{\"a\"}",
	"{\"a\":}",
	"{\"a\":1,}",
	"{,}",
	"{\"a\":[}",
	"{\"a\":[1,]}",
	"{\"a\":01}",
	"{\"a\":1.}",
	"{\"a\":.5}",
	"{\"a\":+1}",
	"{\"a\":1e}",
	"{\"a\":-}",
	"{\"a\":tru}",
	"{\"a\":truex}",
	"{\"a\":\"\x01\"}",
	"{\"a\":\"\\x\"}",
	"{\"a\":\"\\u12g4\"}",
	"{\"a\":\"\\ud800\"}",
	"{\"a\":\"\\udc00\"}",
	"{\"a\":\"\\ud800\\u0041\"}",
	"{\"a\":\"\xff\"}",
	"{\"a\":\"\xc3\"}",
	"{\"a\":\"x}",
	"{\"a\":\"\\",
	"{\"a\":\"\\u00",
	"{\"a\":1]",
	"{\"\\u0000\":1}",
};

static void check(const char *text, size_t size)
{
	json_error_t fault;
	json_t *value = json_loadb(text, size, JSON_ALLOW_NUL, &fault);

	assert_int_equal(coop_jsoncheck_object(text, size), json_is_object(value));
	json_decref(value);
}

static void as_jansson(void **state)
{
	for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++) {
		assert_true(coop_jsoncheck_object(objects[i], strlen(objects[i])));
		check(objects[i], strlen(objects[i]));
	}
	for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
		assert_false(coop_jsoncheck_object(others[i], strlen(others[i])));
		check(others[i], strlen(others[i]));
	}
	assert_false(coop_jsoncheck_object("{}\0", 3));
	const char *large = "{\"a\":1e999,\"b\":99999999999999999999}";
	assert_true(coop_jsoncheck_object(large, strlen(large)));
}

/* Every beginning of an object, and each with one byte changed. */
static void torn(void **state)
{
	for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++) {
		size_t size = strlen(objects[i]);
		char *copy = strdup(objects[i]);
		assert_non_null(copy);
		for (size_t at = 0; at < size; at++) {
			check(copy, at);
			for (const char *c = "\"\\{}[],:0u \x80"; *c; c++) {
				char saved = copy[at];
				copy[at] = *c;
				check(copy, size);
				copy[at] = saved;
			}
		}
		free(copy);
	}
}

static void deep(void **state)
{
	enum { LEVELS = 4000 };
	char *text = malloc(6 * LEVELS);

	assert_non_null(text);
	for (size_t levels = 2040; levels < 2056; levels++) {
		size_t size = 0;
		for (size_t i = 0; i < levels; i++, size += 5)
			memcpy(text + size, "{\"a\":", 5);
		text[size++] = '1';
		memset(text + size, '}', levels);
		check(text, size + levels);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_jansson),
		cmocka_unit_test(torn),
		cmocka_unit_test(deep),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
