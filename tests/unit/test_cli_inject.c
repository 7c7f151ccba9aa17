/* Files that a command gets from the one who starts it: which placement is meant, how bytes travel,
 * and what is too much. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "doors/cli/verbs/inject.h"
#include "folder.h"

/* The one of the command line, without the rest of it. */
void cli_error(struct coop_error *error, const char *code, const char *format, ...)
{
	va_list ap;
	*error = (struct coop_error){.details = "{}"};
	(void)snprintf(error->code, sizeof(error->code), "%s", code);
	va_start(ap, format);
	(void)vsnprintf(error->message, sizeof(error->message), format, ap);
	va_end(ap);
}

static char file[128];
static struct coop_error error;
static struct coop_buf bytes; /* what goes along with the arguments */

static void put(const void *data, size_t size)
{
	(void)snprintf(file, sizeof(file), "%s", folder_path("file"));
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(size ? write(fd, data, size) : 0, (ssize_t)size);
	(void)close(fd);
}

/* What `count` files of this target become, with `bytes`; NULL: refused. */
static json_t *inject(const char *target, size_t count)
{
	char words[256];
	(void)snprintf(words, sizeof(words), "%s=%s", target, file);
	const char **items = calloc(count, sizeof(*items));
	for (size_t i = 0; i < count; i++)
		items[i] = words;
	const struct cli_list list = {items, count};
	json_t *args = json_object();
	coop_buf_clear(&bytes);
	if (cli_inject_args(&list, args, &bytes, &error) < 0) {
		json_decref(args);
		args = NULL;
	}
	free(items);
	return args;
}

static void assert_json(json_t *args, const char *wanted)
{
	assert_non_null(args);
	char *text = json_dumps(args, JSON_COMPACT);
	assert_string_equal(text, wanted);
	free(text);
	json_decref(args);
}

static void assert_bytes(const char *wanted, size_t size)
{
	assert_int_equal(coop_buf_size(&bytes), size);
	if (size)
		assert_memory_equal(coop_buf_front(&bytes), wanted, size);
}

static void placements(void **state)
{
	put("a\n\"b\"", 5);
	assert_json(inject("KEY", 1),
		    "{\"file_injections\":[{\"placement\":\"env\",\"name\":\"KEY\","
		    "\"content_bytes\":5}]}");
	assert_bytes("a\n\"b\"", 5);
	assert_json(inject("/etc/key", 1),
		    "{\"file_injections\":[{\"placement\":\"path\",\"path\":\"/etc/key\","
		    "\"content_bytes\":5}]}");
	put("", 0);
	assert_json(inject("A", 1), "{\"file_injections\":[{\"placement\":\"env\",\"name\":\"A\","
				    "\"content_bytes\":0}]}");
	assert_bytes("", 0);
	const struct cli_list none = {0};
	json_t *args = json_object();
	assert_int_equal(cli_inject_args(&none, args, &bytes, &error), 0);
	assert_json(args, "{}");
}

/* Also what is not text; of several files one after the other. */
static void any_bytes(void **state)
{
	put("a\0\xff", 3);
	assert_json(inject("A", 2), "{\"file_injections\":["
				    "{\"placement\":\"env\",\"name\":\"A\",\"content_bytes\":3},"
				    "{\"placement\":\"env\",\"name\":\"A\",\"content_bytes\":3}]}");
	assert_bytes("a\0\xff"
		     "a\0\xff",
		     6);
}

static void refused(void **state)
{
	static const char *const targets[] = {"", "9A", "A B", "relative/path"};
	put("secret", 6);
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		assert_null(inject(targets[i], 1));
		assert_string_equal(error.code, "invalid_input");
		assert_non_null(strstr(error.message, "expected NAME=FILE"));
	}
	const char *alone[] = {"/path", "NAME"};
	for (size_t i = 0; i < 2; i++) {
		const struct cli_list list = {&alone[i], 1};
		json_t *args = json_object();
		assert_int_not_equal(cli_inject_args(&list, args, &bytes, &error), 0);
		json_decref(args);
	}
	(void)unlink(file);
	assert_null(inject("A", 1));
	assert_non_null(strstr(error.message, "cannot read"));
	assert_null(strstr(error.message, "secret"));
}

static void too_large(void **state)
{
	char *much = calloc(1, CLI_INJECT_FILE_MAX + 1);
	assert_non_null(much);
	memset(much, 'x', CLI_INJECT_FILE_MAX + 1);
	put(much, CLI_INJECT_FILE_MAX + 1);
	assert_null(inject("A", 1));
	assert_string_equal(error.code, "too_large");
	put(much, CLI_INJECT_FILE_MAX);
	json_t *most = inject("A", 2);
	assert_non_null(most);
	assert_int_equal(coop_buf_size(&bytes), CLI_INJECT_TOTAL_MAX);
	json_decref(most);
	assert_null(inject("A", 3));
	assert_string_equal(error.code, "too_large");
	assert_non_null(strstr(error.message, "16 MiB"));
	put("x", 1);
	most = inject("A", 128);
	assert_non_null(most);
	json_decref(most);
	assert_null(inject("A", 129));
	assert_string_equal(error.code, "too_large");
	free(much);
	coop_buf_clear(&bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(placements, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(any_bytes, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(refused, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(too_large, folder_make, folder_remove),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
