/* What /runtime/v1 makes of start messages, of records, and of output that is longer than its
 * budget. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "doors/http/net/exchange.h"
#include "doors/http/runtime/cut.h"
#include "doors/http/runtime/v1/input_frame.h"
#include "doors/http/runtime/v1/start_message.h"
#include "doors/http/runtime/v1/view.h"

/* Not reached: only texts of refusals are needed. */
void coop_http_refuse(struct coop_http_exchange *exchange, unsigned status, const char *code,
		      const char *format, ...)
{
	(void)exchange;
	(void)status;
	(void)code;
	(void)format;
	abort();
}

static json_t *start(const char *text, char error[COOP_START_ERROR_MAX])
{
	json_t *message = json_loads(text, JSON_ALLOW_NUL, NULL);

	assert_non_null(message);
	json_t *args = coop_start_read(message, error);
	json_decref(message);
	return args;
}

static void assert_start(const char *text, const char *expected)
{
	char error[COOP_START_ERROR_MAX];
	json_t *args = start(text, error), *wanted = json_loads(expected, 0, NULL);

	if (!args)
		fail_msg("%s: %s", text, error);
	assert_non_null(wanted);
	(void)json_object_set_new(wanted, "lease", json_string("awaited"));
	(void)json_object_set_new(wanted, "record_failure", json_true());
	(void)json_object_set_new(wanted, "hold", json_true());
	if (!json_equal(args, wanted))
		fail_msg("%s became %s", text, json_dumps(args, 0));
	json_decref(args);
	json_decref(wanted);
}

static void starts_become_spawns(void **state)
{
	(void)state;
	assert_start("{\"cmd\":\"ls\"}",
		     "{\"argv\":[\"ls\"],\"env\":{},\"env_remove\":[],\"stdin\":\"none\"}");
	assert_start(
		"{\"cmd\":\"ls\",\"args\":null,\"environment\":null,\"envs\":null,\"stdin\":null,"
		"\"timeout_ms\":null,\"id\":null,\"cwd\":null,\"user\":null,\"tag\":null,\"pty\":"
		"null}",
		"{\"argv\":[\"ls\"],\"env\":{},\"env_remove\":[],\"stdin\":\"none\"}");
	assert_start("{\"cmd\":\"ls\",\"args\":[\"-l\"],\"stdin\":true,\"timeout_ms\":300,\"id\":"
		     "\"a/b\","
		     "\"cwd\":\"/w\",\"user\":\"me\",\"tag\":\"t\",\"more\":1}",
		     "{\"argv\":[\"ls\",\"-l\"],\"env\":{},\"env_remove\":[],\"stdin\":\"pipe\","
		     "\"timeout_ms\":300,\"timeout_grace_ms\":500,\"alias\":\"a/b\",\"cwd\":\"/w\","
		     "\"user\":\"me\",\"tag\":\"t\"}");
	assert_start(
		"{\"cmd\":\"ls\",\"pty\":{\"cols\":100,\"rows\":30.0},\"timeout_ms\":0}",
		"{\"argv\":[\"ls\"],\"env\":{},\"env_remove\":[],\"kind\":\"pty\",\"cols\":100,"
		"\"rows\":30}");
}

static void values_of_variables(void **state)
{
	(void)state;
	assert_start(
		"{\"cmd\":\"x\",\"envs\":{\"S\":\"\",\"I\":-7,\"R\":1.1,\"E\":1e100,\"T\":true,"
		"\"F\":false,\"N\":null}}",
		"{\"argv\":[\"x\"],\"stdin\":\"none\",\"env_remove\":[\"N\"],\"env\":{\"S\":\"\","
		"\"I\":\"-7\",\"R\":\"1.1\",\"E\":\"1e+100\",\"T\":\"true\",\"F\":\"false\"}}");
	/* The first name wins as a whole. */
	assert_start(
		"{\"cmd\":\"x\",\"environment\":{\"A\":\"1\"},\"envs\":{\"A\":\"2\",\"B\":\"3\"}}",
		"{\"argv\":[\"x\"],\"stdin\":\"none\",\"env_remove\":[],\"env\":{\"A\":\"1\"}}");
}

static void wrong_fields_are_named(void **state)
{
	static const char *const rows[][2] = {
		{"{}", "cmd"},
		{"{\"cmd\":\"\"}", "cmd"},
		{"{\"cmd\":[]}", "cmd"},
		{"{\"cmd\":\"a\\u0000b\"}", "cmd"},
		{"{\"cmd\":\"x\",\"args\":{}}", "args"},
		{"{\"cmd\":\"x\",\"args\":[\"a\",1]}", "args[1]"},
		{"{\"cmd\":\"x\",\"environment\":[]}", "environment"},
		{"{\"cmd\":\"x\",\"envs\":{\"A\":{}}}", "envs.A"},
		{"{\"cmd\":\"x\",\"environment\":{\"A\":[1]}}", "environment.A"},
		{"{\"cmd\":\"x\",\"stdin\":1}", "stdin"},
		{"{\"cmd\":\"x\",\"timeout_ms\":-1}", "timeout_ms"},
		{"{\"cmd\":\"x\",\"timeout_ms\":1.5}", "timeout_ms"},
		{"{\"cmd\":\"x\",\"timeout_ms\":1e300}", "timeout_ms"},
		{"{\"cmd\":\"x\",\"id\":\"\"}", "id"},
		{"{\"cmd\":\"x\",\"id\":7}", "id"},
		{"{\"cmd\":\"x\",\"id\":\"psh-1a-2\"}", "id"},
		{"{\"cmd\":\"x\",\"cwd\":7}", "cwd"},
		{"{\"cmd\":\"x\",\"cwd\":\"a\\u0000\"}", "cwd"},
		{"{\"cmd\":\"x\",\"user\":[]}", "user"},
		{"{\"cmd\":\"x\",\"tag\":1}", "tag"},
		{"{\"cmd\":\"x\",\"pty\":[]}", "pty"},
		{"{\"cmd\":\"x\",\"pty\":{\"cols\":80}}", "pty.rows"},
		{"{\"cmd\":\"x\",\"pty\":{\"cols\":0,\"rows\":1}}", "pty.cols"},
		{"{\"cmd\":\"x\",\"pty\":{\"cols\":1,\"rows\":65536}}", "pty.rows"},
	};
	char error[COOP_START_ERROR_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		assert_null(start(rows[i][0], error));
		size_t length = strlen(rows[i][1]);
		if (strncmp(error, rows[i][1], length) != 0 || error[length] != ' ')
			fail_msg("%s: %s", rows[i][0], error);
	}
}

static void ids(void **state)
{
	char longest[COOP_START_ID_MAX + 2];

	(void)state;
	memset(longest, 'a', sizeof longest);
	assert_true(coop_start_id_valid("a", 1));
	assert_true(coop_start_id_valid("A.b_c:d@e/f+g-9", 15));
	assert_true(coop_start_id_valid("...", 3));
	longest[COOP_START_ID_MAX] = 0;
	assert_true(coop_start_id_valid(longest, COOP_START_ID_MAX));
	longest[COOP_START_ID_MAX] = 'a';
	longest[COOP_START_ID_MAX + 1] = 0;
	assert_false(coop_start_id_valid(longest, COOP_START_ID_MAX + 1));
	static const char *const bad[] = {"",       ".",        "..",      "a b",
					  "#files", "\xc3\xbc", "psh-1-2", "a\n"};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		assert_false(coop_start_id_valid(bad[i], strlen(bad[i])));
	assert_false(coop_process_is_id("psh-1-"));
	assert_false(coop_process_is_id("psh--1"));
	assert_false(coop_process_is_id("psh-1g-1"));
	assert_false(coop_process_is_id("psh-1-1x"));
}

static void assert_end(const char *record, const char *status, int code, const char *error)
{
	json_t *json = json_loads(record, 0, NULL);
	struct coop_process_view view;

	assert_non_null(json);
	assert_true(coop_process_view_read(&view, json));
	assert_string_equal(view.status, status);
	assert_int_equal(view.ended, strcmp(status, "running") != 0);
	if (view.ended)
		assert_int_equal(view.exit_code, code);
	assert_string_equal(view.error, error);
	json_decref(json);
}

#define RECORD "\"id\":\"psh-1-1\",\"state\":\"exited\",\"argv\":[\"x\"],\"cwd\":\"/w\""
#define ENDED RECORD ",\"events\":{\"first\":0,\"next\":2,\"exit\":1}"

static void ends(void **state)
{
	(void)state;
	assert_end("{" RECORD ",\"events\":{\"first\":0,\"next\":2,\"exit\":null}}", "running", 0,
		   "");
	assert_end("{" ENDED ",\"end_cause\":\"self_exit\",\"exit\":{\"code\":0,\"signal\":null}}",
		   "succeeded", 0, "");
	assert_end("{" ENDED ",\"end_cause\":\"killed_by_request\",\"exit\":{\"code\":7}}",
		   "failed", 7, "");
	assert_end("{" ENDED ",\"end_cause\":\"signal\",\"exit\":{\"code\":null,\"signal\":15,"
		   "\"signal_name\":\"SIGTERM\"}}",
		   "killed", -15, "killed by SIGTERM");
	assert_end("{" ENDED ",\"end_cause\":\"timed_out\",\"exit\":{\"code\":0},"
		   "\"limits\":{\"timeout_ms\":300}}",
		   "timed_out", 124, "timed out after 300 ms");
	/* A receipt has no limits, but the evidence. */
	assert_end("{" ENDED ",\"end_cause\":\"timed_out\",\"exit\":{\"signal\":9},"
		   "\"end_evidence\":{\"limit\":\"timeout_ms\",\"value\":150}}",
		   "timed_out", 124, "timed out after 150 ms");
	assert_end("{" ENDED ",\"end_cause\":\"spawn_failed\",\"exit\":{\"code\":127}}", "failed",
		   127, "cannot execute x: No such file or directory");
	assert_end("{" ENDED ",\"end_cause\":\"spawn_failed\",\"exit\":{\"code\":126}}", "failed",
		   126, "x could not be started in /w");
	assert_end("{" ENDED ",\"end_cause\":\"lost\",\"exit\":{\"code\":null,\"signal\":null}}",
		   "failed", COOP_VIEW_LOST_CODE,
		   "how it ended is not known: its keeper was interrupted");
}

static void names(void **state)
{
	static const char *const rows[][2] = {{"null", "psh-1-1"},
					      {"\"web\"", "web"},
					      {"\"psh-2-2\"", "psh-1-1"},
					      {"\"\"", "psh-1-1"}};
	bool none;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct coop_process_view view;
		json_t *record = json_loads("{" RECORD "}", 0, NULL);
		(void)json_object_set_new(record, "alias",
					  json_loads(rows[i][0], JSON_DECODE_ANY, NULL));
		assert_true(coop_process_view_read(&view, record));
		assert_string_equal(view.name, rows[i][1]);
		assert_false(view.hidden);
		json_decref(record);
	}
	char *address = coop_process_address("psh-1-1", &none);
	assert_string_equal(address, "psh-1-1");
	free(address);
	address = coop_process_address("psh-1", &none);
	assert_string_equal(address, "alias:psh-1");
	free(address);
	assert_null(coop_process_address("#files", &none));
	assert_true(none);
}

/* All budgets against all ways to cut 12 bytes into events: what comes out is the head and the tail
 * of them, in order, and events that are whole are not cut. */
static void check_cut(unsigned cuts, size_t head, size_t tail)
{
	static const char text[] = "abcdefghijkl";
	size_t length = sizeof text - 1, seen = 0, at = 0;
	struct coop_runtime_cut cut = {.head_budget = head, .tail_budget = tail};
	char result[sizeof text] = "";
	struct coop_chunk chunk;
	uint64_t cursor = 0, last = UINT64_MAX;

	for (size_t begin = 0, end = 1; end <= length; end++) {
		if (end < length && !(cuts & 1u << end))
			continue;
		chunk = (struct coop_chunk){.cursor = cursor,
					    .stream = COOP_STDOUT,
					    .data = text + begin,
					    .size = end - begin};
		assert_int_equal(coop_runtime_cut_add(&cut, &chunk), 0);
		cursor++;
		begin = end;
	}
	bool all = head + tail >= length;
	while (coop_runtime_cut_next(&cut, &at, &chunk)) {
		assert_true(seen + chunk.size <= length);
		memcpy(result + seen, chunk.data, chunk.size);
		seen += chunk.size;
		/* One event comes twice only where its middle is left out. */
		assert_true(last == UINT64_MAX || chunk.cursor > last ||
			    (!all && chunk.cursor == last));
		last = chunk.cursor;
	}
	assert_int_equal(seen, all ? length : head + tail);
	assert_memory_equal(result, text, all ? length : head);
	if (!all)
		assert_memory_equal(result + head, text + length - tail, tail);
	coop_runtime_cut_clear(&cut);
}

static void heads_and_tails(void **state)
{
	(void)state;
	for (unsigned cuts = 0; cuts < 1u << 12; cuts += 2) {
		for (size_t head = 0; head <= 13; head += 1 + head / 4) {
			for (size_t tail = 0; tail <= 13; tail += 1 + tail / 4)
				check_cut(cuts, head, tail);
		}
	}
}

static void input_messages(void **state)
{
	static const char *const rows[][2] = {
		{"{\"type\":\"stdin\",\"data\":\"aGk=\"}", "aGk="},
		{" { \"data\" : \"\" ,\n\"n\":-1.5e3, \"type\" : \"stdin\", \"x\": null } ", ""},
		{"{\"type\":\"stdin\",\"data\":\"a\",\"data\":\"b\"}", "b"},
		{"{\"type\":\"stdin\",\"data\":\"a\\/b\"}", NULL},
		{"{\"type\":\"stdin\",\"data\":null}", NULL},
		{"{\"type\":\"stdin\"}", NULL},
		{"{\"type\":\"close_stdin\",\"data\":\"a\"}", NULL},
		{"{\"type\":\"stdin\",\"data\":\"a\",\"o\":{}}", NULL},
		{"{\"type\":\"stdin\",\"data\":\"a\"}x", NULL},
		{"{\"type\":\"stdin\",\"data\":\"a\"", NULL},
		{"{\"type\":\"stdin\",\"data\":\"a", NULL},
		{"{\"type\":\"stdin\",\"data\":}", NULL},
		{"{\"type\":\"stdin\" \"data\":\"a\"}", NULL},
		{"{}", NULL},
		{"[]", NULL},
		{"", NULL},
	};
	const char *data;
	size_t size;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		/* Of its very size, so that a read beyond it is seen. */
		size_t length = strlen(rows[i][0]);
		char *text = memcpy(coop_mem_alloc(length), rows[i][0], length);
		bool taken = coop_frame_stdin(text, length, &data, &size);
		assert_int_equal(taken, rows[i][1] != NULL);
		if (taken) {
			assert_int_equal(size, strlen(rows[i][1]));
			assert_memory_equal(data, rows[i][1], size);
		}
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_become_spawns),
		cmocka_unit_test(values_of_variables),
		cmocka_unit_test(wrong_fields_are_named),
		cmocka_unit_test(ids),
		cmocka_unit_test(ends),
		cmocka_unit_test(names),
		cmocka_unit_test(heads_and_tails),
		cmocka_unit_test(input_messages),
	};

	coop_mem_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
