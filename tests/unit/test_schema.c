/* Validation of arguments: each type with what fits and what does not; a refusal names the
 * field. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "interface/schema.h"

static const char *const streams[] = {"stdout", "stderr", NULL};

static const struct coop_field table[] = {
	{.name = "id", .type = COOP_FIELD_STRING, .required = true, .max = 8},
	{.name = "int", .type = COOP_FIELD_INT, .min = 0, .max = 100},
	{.name = "number", .type = COOP_FIELD_NUMBER},
	{.name = "bool", .type = COOP_FIELD_BOOL},
	{.name = "enum", .type = COOP_FIELD_ENUM, .choices = streams},
	{.name = "enums", .type = COOP_FIELD_ENUMS, .choices = streams},
	{.name = "strings", .type = COOP_FIELD_STRINGS, .max = 2},
	{.name = "map", .type = COOP_FIELD_MAP, .max = 2},
	{.name = "offsets", .type = COOP_FIELD_OFFSETS, .choices = streams},
	{.name = "signal", .type = COOP_FIELD_SIGNAL},
	{.name = "object", .type = COOP_FIELD_OBJECT},
	{0},
};

static int check(const char *text, struct coop_err *err)
{
	json_t *args = json_loads(text, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
	assert_non_null(args);
	*err = (struct coop_err){0};
	int r = coop_schema_check(table, args, err);
	json_decref(args);
	return r;
}

static void fitting(void **state)
{
	static const char *const good[] = {
		"{\"id\":\"a\"}",
		"{\"id\":\"12345678\"}",
		"{\"id\":\"a\",\"int\":0}",
		"{\"id\":\"a\",\"int\":100}",
		"{\"id\":\"a\",\"int\":null,\"enum\":null,\"map\":null}",
		"{\"id\":\"a\",\"number\":1.5,\"bool\":false}",
		"{\"id\":\"a\",\"enum\":\"stderr\",\"enums\":[\"stderr\",\"stdout\"]}",
		"{\"id\":\"a\",\"strings\":[\"\",\"b\"],\"map\":{\"A\":\"\",\"B\":\"c\"}}",
		"{\"id\":\"a\",\"offsets\":{\"stdout\":0}}",
		"{\"id\":\"a\",\"signal\":9}",
		"{\"id\":\"a\",\"signal\":\"usr1\",\"object\":{\"x\":[]}}",
	};
	struct coop_err err;

	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		assert_int_equal(check(good[i], &err), 0);
}

static void refused(void **state)
{
	static const struct {
		const char *args, *field;
		enum coop_code code;
	} cases[] = {
		{"[]", "args", COOP_INVALID_INPUT},
		{"7", "args", COOP_INVALID_INPUT},
		{"{}", "id", COOP_INVALID_INPUT},
		{"{\"id\":null}", "id", COOP_INVALID_INPUT},
		{"{\"id\":7}", "id", COOP_INVALID_INPUT},
		{"{\"id\":\"123456789\"}", "id", COOP_TOO_LARGE},
		{"{\"id\":\"a\\u0000b\"}", "id", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"nobody\":1}", "nobody", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"nobody\":null}", "nobody", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"int\":-1}", "int", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"int\":101}", "int", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"int\":1.0}", "int", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"int\":\"1\"}", "int", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"int\":true}", "int", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"number\":\"1\"}", "number", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"bool\":1}", "bool", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"enum\":\"pty\"}", "enum", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"enum\":\"stdout\\u0000\"}", "enum", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"enum\":1}", "enum", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"enums\":\"stdout\"}", "enums", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"enums\":[\"stdout\",\"x\"]}", "enums[1]", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"enums\":[\"stdout\",\"stdout\"]}", "enums[1]",
		 COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"strings\":[\"x\",7]}", "strings[1]", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"strings\":[\"\\u0000\"]}", "strings[0]", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"strings\":[\"\",\"\",\"\"]}", "strings", COOP_TOO_LARGE},
		{"{\"id\":\"a\",\"strings\":{}}", "strings", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"map\":[]}", "map", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"map\":{\"PATH\":7}}", "map.PATH", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"offsets\":{\"pty\":0}}", "offsets.pty", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"offsets\":{\"stdout\":-1}}", "offsets.stdout",
		 COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"signal\":0}", "signal", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"signal\":\"nothing\"}", "signal", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"signal\":\"TERM\\u0000\"}", "signal", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"signal\":[]}", "signal", COOP_INVALID_INPUT},
		{"{\"id\":\"a\",\"object\":[]}", "object", COOP_INVALID_INPUT},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct coop_err err;
		char expected[64];
		assert_true(check(cases[i].args, &err) < 0);
		assert_int_equal(err.code, cases[i].code);
		(void)snprintf(expected, sizeof expected, "\"field\":\"%s\"", cases[i].field);
		/* What more there is to be said of the field comes behind it. */
		size_t size = strlen(expected);
		assert_memory_equal(err.details, expected, size);
		assert_true(err.details[size] == 0 || err.details[size] == ',');
		assert_non_null(strstr(err.message, cases[i].field));
	}
}

/* Programs find the bounds of a number in the details, not in the sentence. */
static void bounds_are_told(void **state)
{
	struct coop_err err;

	assert_true(check("{\"id\":\"a\",\"int\":101}", &err) < 0);
	assert_string_equal(err.details, "\"field\":\"int\",\"minimum\":0,\"maximum\":100");
}

/* Messages go to logs and to other people; what was in the field may be a secret. */
static void value_is_not_told(void **state)
{
	struct coop_err err;

	assert_true(check("{\"id\":\"hunter2hunter2\"}", &err) < 0);
	assert_null(strstr(err.message, "hunter2"));
	assert_true(check("{\"id\":\"a\",\"enum\":\"hunter2\"}", &err) < 0);
	assert_null(strstr(err.message, "hunter2"));
	assert_true(check("{\"id\":\"a\",\"map\":{\"K\":\"hunter2\\u0000\"}}", &err) < 0);
	assert_null(strstr(err.message, "hunter2"));
}

/* However long the name of an unknown argument, the refusal still names a field. */
static void long_name(void **state)
{
	char args[8192];
	struct coop_err err;

	(void)snprintf(args, sizeof args, "{\"id\":\"a\",\"%07000d\":1}", 0);
	assert_true(check(args, &err) < 0);
	assert_int_equal(err.code, COOP_INVALID_INPUT);
	assert_non_null(strstr(err.details, "\"field\":\"0000"));
}

static void no_arguments(void **state)
{
	static const struct coop_field nothing[] = {{0}};
	struct coop_err err = {0};

	assert_int_equal(coop_schema_check(nothing, NULL, &err), 0);
	assert_true(coop_schema_check(table, NULL, &err) < 0);
	assert_string_equal(err.details, "\"field\":\"id\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fitting),         cmocka_unit_test(refused),
		cmocka_unit_test(bounds_are_told), cmocka_unit_test(value_is_not_told),
		cmocka_unit_test(long_name),       cmocka_unit_test(no_arguments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
