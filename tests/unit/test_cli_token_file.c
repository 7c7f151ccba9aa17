/* Files that hold a token: which line it is, and what is refused, without what was read standing in
 * the error. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "doors/cli/cli.h"
#include "doors/cli/token_file.h"

static char path[64];

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

static void put(const char *text, size_t size, mode_t mode)
{
	(void)snprintf(path, sizeof(path), "/tmp/coop-token.XXXXXX");
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), (ssize_t)size);
	assert_int_equal(fchmod(fd, mode), 0);
	(void)close(fd);
}

static int read_back(char token[CLI_TOKEN_SIZE], struct coop_error *error)
{
	int r = cli_token_read(path, token, error);
	(void)unlink(path);
	return r;
}

static void first_line(void **state)
{
	static const struct {
		const char *text, *token;
	} rows[] = {
		{"coop_1_x", "coop_1_x"},     {"coop_1_x\n", "coop_1_x"},
		{"coop_1_x\r\n", "coop_1_x"}, {"coop_1_x\nmore\n", "coop_1_x"},
		{" a b \n", " a b "},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char token[CLI_TOKEN_SIZE];
		struct coop_error error;
		put(rows[i].text, strlen(rows[i].text), 0600);
		assert_int_equal(read_back(token, &error), 0);
		assert_string_equal(token, rows[i].token);
	}
}

static void bounds(void **state)
{
	char text[2 * COOP_TOKEN_MAX], token[CLI_TOKEN_SIZE];
	struct coop_error error;
	memset(text, 'a', sizeof(text));
	put(text, COOP_TOKEN_MAX, 0600);
	assert_int_equal(read_back(token, &error), 0);
	assert_int_equal(strlen(token), COOP_TOKEN_MAX);
	text[COOP_TOKEN_MAX] = '\n';
	put(text, sizeof(text), 0600);
	assert_int_equal(read_back(token, &error), 0);
	text[COOP_TOKEN_MAX] = 'a';
	put(text, sizeof(text), 0600);
	assert_int_equal(read_back(token, &error), -EBADMSG);
	assert_non_null(strstr(error.message, "longer"));
	assert_null(strstr(error.message, "aaa"));
}

static void refused(void **state)
{
	static const struct {
		const char *text;
		size_t size;
		mode_t mode;
		const char *says;
	} rows[] = {
		{"secret\n", 7, 0640, "others can read it (mode 0640)"},
		{"secret\n", 7, 0604, "others can read"},
		{"secret\n", 7, 0622, "others can change"},
		{"", 0, 0600, "empty"},
		{"\n", 1, 0600, "empty"},
		{"\nsecret\n", 8, 0600, "empty"},
		{"sec\0ret\n", 8, 0600, "characters"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char token[CLI_TOKEN_SIZE] = "untouched";
		struct coop_error error;
		put(rows[i].text, rows[i].size, rows[i].mode);
		assert_int_equal(read_back(token, &error), -EBADMSG);
		assert_string_equal(error.code, "invalid_input");
		if (!strstr(error.message, rows[i].says))
			print_error("\"%s\" without \"%s\"\n", error.message, rows[i].says);
		assert_non_null(strstr(error.message, rows[i].says));
		assert_non_null(strstr(error.message, "--token-file /tmp/coop-token."));
		assert_null(strstr(error.message, "secret"));
		assert_string_equal(token, "untouched");
	}
}

static void no_file(void **state)
{
	char token[CLI_TOKEN_SIZE];
	struct coop_error error;
	assert_int_equal(cli_token_read("/nowhere/x", token, &error), -EBADMSG);
	assert_non_null(strstr(error.message, "No such file"));
	assert_int_equal(cli_token_read("/", token, &error), -EBADMSG);
	assert_non_null(strstr(error.message, "no file"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_line),
		cmocka_unit_test(bounds),
		cmocka_unit_test(refused),
		cmocka_unit_test(no_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
