/* Files that a request gives to its process: the bounds of their sizes and number, and where they are put. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "keeper/injections.h"

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

/* Reads the list, which is given away. */
static int read_list(json_t *list, struct coop_err *err)
{
	json_t *args = json_pack("{s:o}", "file_injections", list);
	struct coop_injections *files = NULL;
	int r = coop_injections_read(args, false, &files, err);

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
		int r = read_list(list, &err);
		if (rows[i].field ? r == 0 || err.code != COOP_TOO_LARGE ||
					    !strstr(err.details, rows[i].field)
				  : r < 0)
			fail_msg("row %zu: %d %s %s", i, r, err.message, err.details);
	}
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
		assert_int_equal(read_list(list, &err) < 0, count > COOP_INJECTIONS_MAX);
	}
}

static void places(void **state)
{
	json_t *list = json_array(), *args = json_pack("{s:o}", "file_injections", list);
	struct coop_injections *files = NULL;
	struct coop_err err = {0};

	add(list, "A", "content", 3);
	assert_int_equal(coop_injections_read(args, false, &files, &err), 0);
	assert_null(coop_injections_fixed(files));
	assert_null(files->files[0].path);
	assert_int_equal(coop_injections_place(files, "/x"), 0);
	assert_int_equal(coop_injections_place(files, "/y"), 0);
	assert_string_equal(files->files[0].path, "/y/A");
	coop_injections_free(files);
	json_decref(args);
	assert_int_equal(coop_injections_read(NULL, false, &files, &err), 0);
	assert_null(files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(numbers),
		cmocka_unit_test(places),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
