/* How coop_spawn() says what a process is confined to: members that are not set are not sent, and texts arrive as they are. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/spawn_sandbox.h"

static struct coop_error error;

/* The arguments as text, to be freed; NULL: refused. */
static char *make(const struct coop_spawn_options *options, int *ret)
{
	struct coop_arguments arguments;
	char *text = NULL;
	coop_arguments_begin(&arguments);
	*ret = coop_client_put_sandbox(&arguments, options, &error);
	coop_jsonw_end(&arguments.w);
	assert_int_equal(coop_buf_append(&arguments.text, "", 1), 0);
	if (*ret == 0)
		text = strdup((const char *)coop_buf_front(&arguments.text));
	coop_arguments_clear(&arguments);
	return text;
}

static void assert_made(const struct coop_spawn_options *options, const char *wanted)
{
	int r;
	char *text = make(options, &r);
	assert_int_equal(r, 0);
	assert_string_equal(text, wanted);
	free(text);
}

static void members(void **state)
{
	const char *const paths[] = {"/a", "~/b", NULL}, *const none[] = {NULL};
	const struct coop_spawn_sandbox sandbox = {.profile = "read-only",
						   .workspace = "/w",
						   .network = "none",
						   .home = "hidden",
						   .root = "minimal",
						   .deny_read = paths,
						   .require = none},
					empty = {0};
	const struct coop_spawn_limits limits = {
		.memory_bytes = 1 << 20, .cpu_millis = 1050, .max_pids = 3, .tmp_bytes = 9};
	assert_made(&(struct coop_spawn_options){0}, "{}");
	assert_made(&(struct coop_spawn_options){.sandbox = &empty}, "{\"sandbox\":{}}");
	assert_made(
		&(struct coop_spawn_options){.sandbox = &sandbox},
		"{\"sandbox\":{\"profile\":\"read-only\",\"workspace\":\"/"
		"w\",\"network\":\"none\",\"home\":\"hidden\",\"root\":\"minimal\",\"deny_read\":"
		"[\"/a\",\"~/b\"],\"require\":[]}}");
	assert_made(&(struct coop_spawn_options){.limits = &limits},
		    "{\"limits\":{\"memory_bytes\":1048576,\"max_pids\":3,\"tmp_bytes\":9,\"cpu_"
		    "quota\":1.050}}");
}

static void files(void **state)
{
	const struct coop_spawn_file two[] = {{.name = "KEY", .data = "a\0b", .size = 3},
					      {.path = "/etc/x", .data = NULL, .size = 0}};
	assert_made(&(struct coop_spawn_options){.files = two, .file_count = 2},
		    "{\"file_injections\":[{\"placement\":\"env\",\"name\":\"KEY\",\"content_"
		    "base64\":\"YQBi\"},{\"placement\":\"path\",\"path\":\"/"
		    "etc/x\",\"content_base64\":\"\"}]}");
}

static void refused(void **state)
{
	const char *const bad[] = {"/a", "\xff", NULL};
	const struct coop_spawn_sandbox list = {.allow_write = bad}, text = {.profile = "\xff"};
	const struct coop_spawn_file neither = {.data = "", .size = 0},
				     both = {.name = "A", .path = "/a"},
				     large = {.name = "A", .data = "", .size = COOP_FILE_MAX + 1};
	const struct {
		struct coop_spawn_options options;
		int status;
		const char *code, *says;
	} rows[] = {
		{{.sandbox = &list}, -EINVAL, "invalid_input", "sandbox.allow_write[1]"},
		{{.sandbox = &text}, -EINVAL, "invalid_input", "sandbox.profile"},
		{{.files = &neither, .file_count = 1}, -EINVAL, "invalid_input", "file_injections"},
		{{.files = &both, .file_count = 1}, -EINVAL, "invalid_input", "file_injections"},
		{{.files = &large, .file_count = 1}, -EMSGSIZE, "too_large", "8 MiB"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int r;
		assert_null(make(&rows[i].options, &r));
		assert_int_equal(r, rows[i].status);
		assert_string_equal(error.code, rows[i].code);
		assert_true(strstr(error.message, rows[i].says) ||
			    strstr(error.details, rows[i].says));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members),
		cmocka_unit_test(files),
		cmocka_unit_test(refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
