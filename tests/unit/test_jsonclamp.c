#include "base/json/jsonclamp.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void check(const char *text, const char *expected)
{
	char copy[256];
	size_t size = strlen(text);

	assert_true(size < sizeof copy);
	memcpy(copy, text, size + 1);
	coop_jsonclamp(copy, size);
	assert_string_equal(copy, expected);
}

static void integers(void **state)
{
	check("{\"a\":18446744073709551616}", "{\"a\":9223372036854775807 }");
	check("{\"a\":-18446744073709551616,\"b\":1}", "{\"a\":-9223372036854775808 ,\"b\":1}");
	check("[1234567890123456789]", "[9223372036854775807]");
	check("[true99999999999999999999]", "[true9223372036854775807 ]");
	check("[123456789012345678,0,-1]", "[123456789012345678,0,-1]");
}

static void reals(void **state)
{
	check("{\"a\":1e400}", "{\"a\":1e99 }");
	check("{\"a\":-1E+400}", "{\"a\":1e99   }");
	check("[1.5,true,false,null]", "[1.5,true,false,null]");
}

/* What is in a string is nobody's number; an escaped quote does not end it. */
static void strings(void **state)
{
	check("{\"18446744073709551616\":\"99999999999999999999\"}",
	      "{\"18446744073709551616\":\"99999999999999999999\"}");
	check("[\"\\\"99999999999999999999\",99999999999999999999]",
	      "[\"\\\"99999999999999999999\",9223372036854775807 ]");
	check("[\"\\", "[\"\\");
	check("[\"", "[\"");
}

static void the_parser_takes_it(void **state)
{
	char text[] = "{\"limit\":99999999999999999999999,\"x\":1e999,\"y\":-1.5e+777}";
	json_error_t fault;

	assert_null(json_loads(text, 0, &fault));
	assert_int_equal(json_error_code(&fault), json_error_numeric_overflow);
	coop_jsonclamp(text, strlen(text));
	json_t *value = json_loads(text, 0, &fault);
	assert_non_null(value);
	assert_int_equal(json_integer_value(json_object_get(value, "limit")), INT64_MAX);
	json_decref(value);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers),
		cmocka_unit_test(reals),
		cmocka_unit_test(strings),
		cmocka_unit_test(the_parser_takes_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
