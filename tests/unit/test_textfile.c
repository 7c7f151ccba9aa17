/* Whole files as text: of any size, of none, cut where they are too long, and nothing left of those
 * that cannot be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/io/textfile.h"
#include "folder.h"

#define BIG 100000u

static void write_file(const char *name, size_t size)
{
	FILE *file = fopen(folder_path(name), "w");

	assert_non_null(file);
	for (size_t i = 0; i < size; i++)
		assert_int_equal(fputc('a' + (int)(i % 26), file), 'a' + (int)(i % 26));
	assert_int_equal(fclose(file), 0);
}

static void whole(void **state)
{
	static const size_t sizes[] = {0, 1, 16383, 16384, 16385, BIG};

	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct coop_buf buf = {0};
		write_file("file", sizes[i]);
		assert_int_equal(coop_textfile_read(folder_path("file"), sizes[i], &buf), 0);
		assert_int_equal(coop_buf_size(&buf), sizes[i] + 1);
		const char *text = (const char *)coop_buf_front(&buf);
		assert_int_equal(strlen(text), sizes[i]);
		for (size_t at = 0; at < sizes[i]; at++)
			assert_int_equal(text[at], 'a' + (int)(at % 26));
		coop_buf_clear(&buf);
	}
}

static void too_long(void **state)
{
	static const size_t most[] = {0, 1, 16383, 16384, BIG - 1};

	write_file("file", BIG);
	for (size_t i = 0; i < sizeof most / sizeof *most; i++) {
		struct coop_buf buf = {0};
		assert_int_equal(coop_textfile_read(folder_path("file"), most[i], &buf), -EFBIG);
		assert_int_equal(strlen((const char *)coop_buf_front(&buf)), most[i]);
		coop_buf_clear(&buf);
	}
}

/* /proc tells the size 0 of all its files. */
static void of_proc(void **state)
{
	struct coop_buf buf = {0};

	assert_int_equal(coop_textfile_read("/proc/self/mountinfo", BIG, &buf), 0);
	assert_true(coop_buf_size(&buf) > 10);
	coop_buf_clear(&buf);
}

static void appended(void **state)
{
	struct coop_buf buf = {0};

	assert_int_equal(coop_buf_append(&buf, "xxbefore", 8), 0);
	coop_buf_consume(&buf, 2);
	assert_int_equal(coop_textfile_read(folder_path("nowhere"), BIG, &buf), -ENOENT);
	assert_int_equal(coop_textfile_read(folder, BIG, &buf), -EISDIR);
	assert_true(coop_textfile_read("/proc/self/mem", BIG, &buf) < 0);
	assert_int_equal(coop_buf_size(&buf), 6);
	write_file("file", 3);
	assert_int_equal(coop_textfile_read(folder_path("file"), 3, &buf), 0);
	assert_string_equal((const char *)coop_buf_front(&buf), "beforeabc");
	coop_buf_clear(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(whole, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(too_long, folder_make, folder_remove),
		cmocka_unit_test(of_proc),
		cmocka_unit_test_setup_teardown(appended, folder_make, folder_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
