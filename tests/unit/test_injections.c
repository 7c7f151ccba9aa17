/* Files that a request gives to its process: the bounds of their sizes and number, and where they
 * are put. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "keeper/confine/injections.h"

#define MIB ((size_t)1 << 20)

static void add(json_t *list, const char *name, const char *member, size_t size)
{
	char *text = malloc(size + 1);

	assert_non_null(text);
	memset(text, 'A', size);
	text[size] = 0;
	(void)json_array_append_new(
		list, json_pack("{s:s, s:s, s:s}", "placement", "env", "name", name, member, text));
	free(text);
}

static void add_apart(json_t *list, const char *name, json_int_t size)
{
	(void)json_array_append_new(list, json_pack("{s:s, s:s, s:I}", "placement", "env", "name",
						    name, "content_bytes", size));
}

static const struct coop_injections_data none;

/* Reads the list, which is given away. */
static int read_list(json_t *list, struct coop_injections_data data, struct coop_err *err)
{
	json_t *args = json_pack("{s:o}", "file_injections", list);
	struct coop_injections *files = NULL;
	int r = coop_injections_read(args, data, false, &files, err);

	if (r == 0)
		coop_injections_free(files);
	json_decref(args);
	return r;
}

static void sizes(void **state)
{
	static const struct {
		const char *member;
		size_t sizes[4];
		const char *field; /* NULL: it is taken */
	} rows[] = {
		{"content", {8 * MIB}, NULL},
		{"content", {8 * MIB, 8 * MIB, 0}, NULL},
		{"content", {8 * MIB + 1}, "\"file_injections[0]\""},
		{"content", {1, 8 * MIB + 1}, "\"file_injections[1]\""},
		{"content", {8 * MIB, 8 * MIB, 1}, "\"file_injections[2]\""},
		{"content", {6 * MIB, 6 * MIB, 6 * MIB}, "\"file_injections[2]\""},
		/* 8 MiB and a byte less, a byte more: as base64 */
		{"content_base64", {(8 * MIB - 2) / 3 * 4}, NULL},
		{"content_base64", {(8 * MIB + 1) / 3 * 4}, "\"file_injections[0]\""},
		{"content_base64", {16 * MIB}, "\"file_injections[0]\""},
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *list = json_array();
		struct coop_err err = {0};
		for (size_t j = 0; j < 4 && (j == 0 || rows[i].sizes[j]); j++)
			add(list, (const char *const[]){"A", "B", "C", "D"}[j], rows[i].member,
			    rows[i].sizes[j]);
		int r = read_list(list, none, &err);
		if (rows[i].field ? r == 0 || err.code != COOP_TOO_LARGE ||
					    !strstr(err.details, rows[i].field)
				  : r < 0)
			fail_msg("row %zu: %d %s %s", i, r, err.message, err.details);
	}
}

/* The same for what travels apart from the arguments, whose size is told; which must be there. */
static void sizes_apart(void **state)
{
	static const struct {
		json_int_t sizes[4];
		size_t data;
		const char *field; /* NULL: it is taken */
	} rows[] = {
		{{0}, 0, NULL},
		{{3, 0, 4}, 7, NULL},
		{{3, 0, 4}, 8, NULL},
		{{3, 0, 4}, 6, "\"file_injections[2].content_bytes\""},
		{{1}, 0, "\"file_injections[0].content_bytes\""},
		{{8 * MIB}, 8 * MIB, NULL},
		{{8 * MIB, 8 * MIB}, 16 * MIB, NULL},
		{{8 * MIB + 1}, 20 * MIB, "\"file_injections[0]\""},
		{{8 * MIB, 8 * MIB, 1}, 20 * MIB, "\"file_injections[2]\""},
		{{8 * MIB + 1}, 0, "\"file_injections[0]\""},
		{{1, COOP_JSON_INT_MAX}, 20 * MIB, "\"file_injections[1]\""},
		{{-1}, 20 * MIB, "\"file_injections[0].content_bytes\""},
		{{1, INT64_MIN}, 20 * MIB, "\"file_injections[1].content_bytes\""},
	};

	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		json_t *list = json_array();
		struct coop_err err = {0};
		/* Of exactly that size, so that a checker of memory sees what is read behind it. */
		uint8_t *bytes = rows[i].data ? calloc(1, rows[i].data) : NULL;
		const struct coop_injections_data data = {bytes, rows[i].data};
		for (size_t j = 0; j < 4; j++)
			add_apart(list, (const char *const[]){"A", "B", "C", "D"}[j],
				  rows[i].sizes[j]);
		int r = read_list(list, data, &err);
		if (rows[i].field)
			assert_non_null(strstr(err.details, rows[i].field));
		assert_int_equal(r < 0, rows[i].field != NULL);
		free(bytes);
	}
}

static void check_rest(const char *args_text, size_t size, size_t rest)
{
	static const uint8_t bytes[10];
	const struct coop_injections_data data = {size ? bytes : NULL, size};
	json_t *args = json_loads(args_text, JSON_DECODE_ANY, NULL);
	struct coop_injections_data got = coop_injections_rest(args, data);

	assert_int_equal(got.size, rest);
	assert_ptr_equal(got.bytes, size ? bytes + (size - rest) : NULL);
	json_decref(args);
}

/* What is stdin's is known of any arguments. */
static void rest(void **state)
{
	check_rest("null", 10, 10);
	check_rest("{}", 10, 10);
	check_rest("[1]", 10, 10);
	check_rest("{\"file_injections\": {\"content_bytes\": 3}}", 10, 10);
	check_rest(
		"{\"file_injections\": [{\"content_bytes\": 3}, 5, null, {\"content_bytes\": 4}]}",
		10, 3);
	check_rest("{\"file_injections\": [{\"content_bytes\": -3}, {\"content_bytes\": \"4\"}]}",
		   10, 10);
	check_rest("{\"file_injections\": [{\"content_bytes\": 9007199254740991}]}", 10, 0);
	check_rest("{\"file_injections\": [{\"content_bytes\": 3}]}", 0, 0);
}

/* Each file gets its own bytes, whatever stands between; one content is enough. */
static void bytes_apart(void **state)
{
	static const uint8_t bytes[] = "aaabbrest";
	const struct coop_injections_data data = {bytes, sizeof bytes - 1};
	json_t *list = json_array(), *args = json_pack("{s:o}", "file_injections", list);
	struct coop_injections *files = NULL;
	struct coop_err err = {0};

	add_apart(list, "A", 3);
	add(list, "B", "content", 5);
	add_apart(list, "C", 2);
	add_apart(list, "D", 0);
	assert_int_equal(coop_injections_read(args, data, false, &files, &err), 0);
	assert_int_equal(files->files[0].size, 3);
	assert_ptr_equal(files->files[0].bytes, bytes);
	assert_memory_equal(files->files[1].bytes, "AAAAA", 5);
	assert_ptr_equal(files->files[2].bytes, bytes + 3);
	assert_int_equal(files->files[2].size, 2);
	assert_int_equal(files->files[3].size, 0);
	assert_non_null(files->files[3].bytes);
	coop_injections_free(files);
	(void)json_object_set_new(json_array_get(list, 1), "content_bytes", json_integer(1));
	assert_int_not_equal(coop_injections_read(args, data, false, &files, &err), 0);
	assert_non_null(strstr(err.details, "\"file_injections[1].content\""));
	json_decref(args);
}

static void numbers(void **state)
{
	for (unsigned count = COOP_INJECTIONS_MAX; count <= COOP_INJECTIONS_MAX + 1; count++) {
		json_t *list = json_array();
		struct coop_err err = {0};
		char name[16];
		for (unsigned i = 0; i < count; i++) {
			(void)snprintf(name, sizeof name, "F%u", i);
			add(list, name, "content", 1);
		}
		assert_int_equal(read_list(list, none, &err) < 0, count > COOP_INJECTIONS_MAX);
	}
}

static void places(void **state)
{
	json_t *list = json_array(), *args = json_pack("{s:o}", "file_injections", list);
	struct coop_injections *files = NULL;
	struct coop_err err = {0};

	add(list, "A", "content", 3);
	assert_int_equal(coop_injections_read(args, none, false, &files, &err), 0);
	assert_null(coop_injections_fixed(files));
	assert_null(files->files[0].path);
	assert_int_equal(coop_injections_place(files, "/x"), 0);
	assert_int_equal(coop_injections_place(files, "/y"), 0);
	assert_string_equal(files->files[0].path, "/y/A");
	coop_injections_free(files);
	json_decref(args);
	assert_int_equal(coop_injections_read(NULL, none, false, &files, &err), 0);
	assert_null(files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),   cmocka_unit_test(sizes_apart),
		cmocka_unit_test(rest),    cmocka_unit_test(bytes_apart),
		cmocka_unit_test(numbers), cmocka_unit_test(places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
