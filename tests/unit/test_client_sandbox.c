/* How coop_spawn() says what a process is confined to: members that are not set are not sent, and
 * texts arrive as they are. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "client/spawn_sandbox.h"
#include "interface/frame.h"

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
		    "bytes\":3},{\"placement\":\"path\",\"path\":\"/"
		    "etc/x\",\"content_bytes\":0}]}");
}

/* The files' bytes in their order, then stdin's if there are any. */
static void gathered(void **state)
{
	const struct coop_spawn_file three[] = {{.name = "A", .data = "a\0b", .size = 3},
						{.name = "B", .data = NULL, .size = 0},
						{.path = "/c", .data = "c", .size = 1}};
	const struct {
		size_t count;
		enum coop_input input;
		size_t size;
	} rows[] = {{3, COOP_INPUT_DATA, 7}, {3, COOP_INPUT_PIPE, 4}, {0, COOP_INPUT_NONE, 0}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct coop_spawn_options options = {.files = three,
							   .file_count = rows[i].count,
							   .input = rows[i].input,
							   .input_data = "xyz",
							   .input_size = 3};
		struct coop_buf bytes = {0};
		assert_int_equal(coop_client_gather(&options, &bytes), 0);
		assert_int_equal(coop_buf_size(&bytes), rows[i].size);
		if (rows[i].size)
			assert_memory_equal(coop_buf_front(&bytes), "a\0bcxyz", rows[i].size);
		coop_buf_clear(&bytes);
	}
}

static void send_json(int fd, const char *json)
{
	uint8_t frame[256];
	size_t size = strlen(json);
	assert_true(size + COOP_FRAME_HEADER <= sizeof(frame));
	coop_frame_put_json(frame, size);
	memcpy(frame + COOP_FRAME_HEADER, json, size);
	assert_int_equal(write(fd, frame, COOP_FRAME_HEADER + size),
			 (ssize_t)(COOP_FRAME_HEADER + size));
}

/* All of it in one request, to a keeper that is played here. */
static void sent(void **state)
{
	const struct coop_spawn_file file = {.name = "A", .data = "a\0b", .size = 3};
	struct coop_spawn_options options = {.argv = (const char *const[]){"true", NULL},
					     .files = &file,
					     .file_count = 1,
					     .input = COOP_INPUT_DATA,
					     .input_data = "xyz",
					     .input_size = 3};
	static uint8_t bytes[65536];
	struct coop_frame frame;
	char id[COOP_ID_SIZE];
	const char *why;
	size_t used, more;
	int pair[2];
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	struct coop *coop = coop_client_new(pair[0]);
	assert_non_null(coop);
	send_json(pair[1], "{\"hello\":{\"protocol\":1,\"version\":\"0.9\",\"pid\":42}}");
	assert_int_equal(coop_client_greet(coop, &error), 0);
	send_json(pair[1], "{\"id\":1,\"result\":{\"process\":{\"id\":\"1-2\"}}}");
	assert_int_equal(coop_spawn(coop, &options, id, &error), 0);
	assert_string_equal(id, "1-2");
	ssize_t n = read(pair[1], bytes, sizeof(bytes));
	assert_int_equal(coop_frame_parse(bytes, (size_t)n, &frame, &used, &why), 1);
	assert_memory_equal(frame.bytes + frame.size - 10, ",\"data\":6}", 10);
	assert_int_equal(coop_frame_parse(bytes + used, (size_t)n - used, &frame, &more, &why), 1);
	assert_int_equal(frame.kind, COOP_FRAME_DATA);
	assert_int_equal(frame.size, 6);
	assert_memory_equal(frame.bytes, "a\0bxyz", 6);
	/* Files make no room for more input. */
	options.input_size = COOP_SPAWN_STDIN_MAX + 1;
	assert_int_equal(coop_spawn(coop, &options, id, &error), -EMSGSIZE);
	assert_string_equal(error.code, "too_large");
	coop_close(coop);
	(void)close(pair[1]);
}

static void refused(void **state)
{
	const char *const bad[] = {"/a", "\xff", NULL};
	const struct coop_spawn_sandbox list = {.allow_write = bad}, text = {.profile = "\xff"};
	const struct coop_spawn_file neither = {.data = "", .size = 0},
				     both = {.name = "A", .path = "/a"},
				     large = {.name = "A", .data = "", .size = COOP_FILE_MAX + 1},
				     many[] = {{.name = "A", .data = "", .size = COOP_FILE_MAX},
					       {.name = "B", .data = "", .size = COOP_FILE_MAX},
					       {.name = "C", .data = "", .size = 1}};
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
		{{.files = many, .file_count = 3}, -EMSGSIZE, "too_large", "16 MiB"},
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
		cmocka_unit_test(members), cmocka_unit_test(files),   cmocka_unit_test(gathered),
		cmocka_unit_test(sent),    cmocka_unit_test(refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
