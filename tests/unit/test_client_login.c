/* Tokens on the client's side: where one comes from, what cannot be one, what a refusal becomes;
 * and what of the environment goes on. The keeper is played by the test, on a socketpair. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "client/client.h"
#include "interface/frame.h"

#define SECRET "coop_7_c2VjcmV0"

struct fixture {
	struct coop *coop;
	int keeper; /* the other end */
};

static void send_json(int fd, const char *json)
{
	uint8_t frame[16384];
	size_t size = strlen(json);

	assert_true(size + COOP_FRAME_HEADER <= sizeof frame);
	coop_frame_put_json(frame, size);
	memcpy(frame + COOP_FRAME_HEADER, json, size);
	assert_int_equal(write(fd, frame, COOP_FRAME_HEADER + size),
			 (ssize_t)(COOP_FRAME_HEADER + size));
}

static int set_up(void **state)
{
	int pair[2];
	struct fixture *f = calloc(1, sizeof *f);

	if (!f || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return -1;
	*state = f;
	f->keeper = pair[1];
	f->coop = coop_client_new(pair[0]);
	send_json(f->keeper,
		  "{\"hello\": {\"protocol\": 1, \"version\": \"0.9\", \"pid\": 42, \"inherit\": "
		  "[\"GOFLAGS\", \"CI_*\", \"*_DIR\", \"A*B*C\", 7]}}");
	return coop_client_greet(f->coop, NULL);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	coop_close(f->coop);
	close(f->keeper);
	free(f);
	return 0;
}

static void test_where_it_comes_from(void **state)
{
	static const struct {
		const char *option, *variable, *token;
	} rows[] = {
		{NULL, NULL, NULL},   {NULL, "", NULL},      {NULL, "env", "env"},
		{"own", NULL, "own"}, {"own", "env", "own"}, {"", "env", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct coop_options options = {.token = rows[i].option};
		const char *token = "untouched";

		(void)unsetenv("COOP_TOKEN");
		if (rows[i].variable)
			assert_int_equal(setenv("COOP_TOKEN", rows[i].variable, 1), 0);
		assert_int_equal(coop_client_token(&options, &token, NULL), 0);
		if (rows[i].token)
			assert_string_equal(token, rows[i].token);
		else
			assert_null(token);
	}
	(void)unsetenv("COOP_TOKEN");
}

/* Refused without a word to anybody, and never quoted. */
static void test_what_cannot_be_one(void **state)
{
	char longest[COOP_TOKEN_MAX + 2];
	const char *const bad[] = {"se\tcret", "secret\n", "\x7fsecret", "secr\xc3\xa4t", longest};
	const char *token = NULL;

	(void)state;
	memset(longest, 's', sizeof longest - 1);
	longest[sizeof longest - 1] = 0;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct coop_error error;
		struct coop *coop = NULL;
		const struct coop_options options = {
			.token = bad[i], .socket = "/nowhere/coop.sock", .no_start = true};

		assert_int_equal(coop_open(&options, &coop, &error), -EINVAL);
		assert_string_equal(error.code, "invalid_input");
		assert_string_equal(error.details, "{\"field\":\"token\"}");
		assert_null(strstr(error.message, "secr"));
		assert_null(strstr(error.message, "sss"));
	}
	longest[COOP_TOKEN_MAX] = 0;
	assert_int_equal(coop_client_token(&(struct coop_options){.token = longest}, &token, NULL),
			 0);
}

static void test_private_keeper_knows_none(void **state)
{
	const struct coop_options options = {.token = SECRET};
	struct coop_error error;
	struct coop *coop = NULL;

	(void)state;
	assert_int_equal(coop_open_private(&options, &coop, &error), -EINVAL);
	assert_string_equal(error.code, "invalid_input");
	assert_null(strstr(error.message, SECRET));
}

static void test_login(void **state)
{
	struct fixture *f = *state;
	struct coop_error error;
	char sent[256] = "";

	send_json(f->keeper, "{\"id\": 1, \"result\": {\"principal\": \"uid:1\", \"agent\": "
			     "\"main/a\", \"operator\": false}}");
	assert_int_equal(coop_client_login(f->coop, SECRET, &error), 0);
	assert_true(read(f->keeper, sent, sizeof sent - 1) > COOP_FRAME_HEADER);
	assert_non_null(strstr(sent + COOP_FRAME_HEADER, "\"op\":\"login\""));
	assert_non_null(strstr(sent + COOP_FRAME_HEADER, "{\"token\":\"" SECRET "\"}"));
}

static void test_refusals(void **state)
{
	static const struct {
		const char *answer;
		int status;
		const char *code;
	} rows[] = {
		{"{\"id\": 1, \"error\": {\"code\": \"permission_denied\", \"message\": \"no\"}}",
		 -EACCES, "permission_denied"},
		/* A keeper of an earlier version must not be taken for one that was asked
		 * nothing. */
		{"{\"id\": 1, \"error\": {\"code\": \"invalid_input\", \"message\": \"no op\"}}",
		 -EREMOTEIO, "invalid_input"},
		{"{\"id\": 1, \"result\": 7}", -EPROTO, "protocol"},
		{"{\"error\": {\"code\": \"unavailable\", \"message\": \"full\"}, \"fatal\": true}",
		 -EPIPE, "unavailable"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct coop_error error = {0};
		void *fixture = NULL;

		assert_int_equal(set_up(&fixture), 0);
		const struct fixture *f = fixture;
		send_json(f->keeper, rows[i].answer);
		assert_int_equal(coop_client_login(f->coop, SECRET, &error), rows[i].status);
		assert_string_equal(error.code, rows[i].code);
		assert_null(strstr(error.message, SECRET));
		(void)tear_down(&fixture);
	}
}

static void test_without_memory(void **state)
{
	int failures = 0, r = -1;

	(void)state;
	for (unsigned n = 1; r < 0; n++) {
		char fault[32];
		void *fixture = NULL;
		struct coop_error error;

		assert_int_equal(set_up(&fixture), 0);
		const struct fixture *f = fixture;
		send_json(f->keeper, "{\"id\": 1, \"result\": {\"agent\": \"main\"}}");
		(void)snprintf(fault, sizeof fault, "alloc:%u", n);
		assert_int_equal(setenv("COOP_FAULT", fault, 1), 0);
		coop_mem_init();
		r = coop_client_login(f->coop, SECRET, &error);
		(void)unsetenv("COOP_FAULT");
		coop_mem_init();
		failures += r < 0;
		assert_true(r == 0 || r == -ENOMEM || r == -EPIPE);
		(void)tear_down(&fixture);
		assert_true(n < 100);
	}
	assert_true(failures >= 2);
}

/* The envelope of a blocked command fits. */
static void test_long_details(void **state)
{
	char answer[9000], text[7001];
	struct coop_error error;

	(void)state;
	memset(text, 'x', sizeof text - 1);
	text[sizeof text - 1] = 0;
	(void)snprintf(answer, sizeof answer,
		       "{\"code\": \"permission_denied\", \"details\": {\"command\": \"%s\"}}",
		       text);
	coop_client_error_parse(answer, strlen(answer), &error);
	assert_int_equal(strlen(error.details), strlen("{\"command\":\"\"}") + sizeof text - 1);
}

static void test_inherits(void **state)
{
	static const char *const yes[] = {"PATH", "TZ",    "LC_ALL", "LC_",     "GOFLAGS", "CI_",
					  "CI_X", "A_DIR", "ABC",    "AxxBBxC", "ABCBC"};
	static const char *const no[] = {"",    "PATHS", "LC", "GOFLAGS2", "xCI_",      "CI",
					 "DIR", "AC",    "AB", "ABCx",     "COOP_TOKEN"};
	const struct fixture *f = *state;

	for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
		assert_true(coop_inherits(f->coop, yes[i]));
	for (size_t i = 0; i < sizeof no / sizeof *no; i++)
		assert_false(coop_inherits(f->coop, no[i]));
}

static size_t count(char **list, const char *start)
{
	size_t n = 0;

	for (; *list; list++)
		n += strncmp(*list, start, strlen(start)) == 0;
	return n;
}

static void test_keeper_gets_no_token(void **state)
{
	char entry[] = "COOP_SOCKET=/new";

	(void)state;
	assert_int_equal(setenv("COOP_TOKEN", SECRET, 1), 0);
	assert_int_equal(setenv("COOP_TOKENS", "other", 1), 0);
	assert_int_equal(setenv("COOP_SOCKET", "/old", 1), 0);
	char **list = coop_client_environment(entry);
	assert_non_null(list);
	assert_int_equal(count(list, "COOP_TOKEN="), 0);
	assert_int_equal(count(list, "COOP_TOKENS=other"), 1);
	assert_int_equal(count(list, "COOP_SOCKET="), 1);
	assert_int_equal(count(list, entry), 1);
	free(list);
	list = coop_client_environment(NULL);
	assert_non_null(list);
	assert_int_equal(count(list, "COOP_SOCKET=/old"), 1);
	assert_int_equal(count(list, "COOP_TOKEN="), 0);
	free(list);
	(void)unsetenv("COOP_TOKEN");
}

#define WITH_KEEPER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_where_it_comes_from),
		cmocka_unit_test(test_what_cannot_be_one),
		cmocka_unit_test(test_private_keeper_knows_none),
		WITH_KEEPER(test_login),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_without_memory),
		cmocka_unit_test(test_long_details),
		WITH_KEEPER(test_inherits),
		cmocka_unit_test(test_keeper_gets_no_token),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
