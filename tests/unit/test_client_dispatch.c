/* The connection's core against a keeper that the test plays itself, on a socketpair: what goes
 * out, what comes in, in which pieces, and how it ends. */
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

#include <errno.h>

#include "base/mem.h"
#include "client/client.h"
#include "client/scan.h"
#include "interface/frame.h"

struct fixture {
	struct coop *coop;
	int keeper; /* the other end */
};

struct seen {
	char log[512];
	int status;
	struct coop_error error;
	int done;
	struct coop *coop; /* not NULL: submit and call from within the handler */
};

static void send_raw(int fd, const void *bytes, size_t size)
{
	assert_int_equal(write(fd, bytes, size), (ssize_t)size);
}

static void send_json(int fd, const char *json)
{
	uint8_t frame[4096];
	size_t size = strlen(json);

	coop_frame_put_json(frame, size);
	memcpy(frame + COOP_FRAME_HEADER, json, size);
	send_raw(fd, frame, COOP_FRAME_HEADER + size);
}

static void send_data(int fd, uint64_t request, uint8_t stream, const char *text)
{
	uint8_t frame[4096];
	struct coop_frame header = {
		.kind = COOP_FRAME_DATA,
		.stream = stream,
		.request = request,
		.offset = 5,
		.cursor = COOP_FRAME_NO_CURSOR,
		.size = strlen(text),
	};

	coop_frame_put_data(frame, &header);
	memcpy(frame + COOP_FRAME_DATA_HEADER, text, header.size);
	send_raw(fd, frame, COOP_FRAME_DATA_HEADER + header.size);
}

static int set_up(void **state)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
		return -1;
	struct fixture *f = calloc(1, sizeof *f);
	if (!f)
		return -1;
	*state = f;
	f->keeper = pair[1];
	f->coop = coop_client_new(pair[0]);
	send_json(f->keeper, "{\"hello\": {\"protocol\": 1, \"version\": \"0.9\", \"pid\": 42}}");
	return coop_client_greet(f->coop, NULL);
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	coop_close(f->coop);
	if (f->keeper >= 0)
		close(f->keeper);
	free(f);
	return 0;
}

static void note_data(void *user, uint64_t request, const struct coop_chunk *chunk)
{
	struct seen *seen = user;
	size_t used = strlen(seen->log);

	(void)request;
	snprintf(seen->log + used, sizeof seen->log - used, "data %d %d %.*s;", (int)chunk->stream,
		 (int)chunk->offset, (int)chunk->size, (const char *)chunk->data);
}

static void note_event(void *user, uint64_t request, const char *json)
{
	struct seen *seen = user;
	size_t used = strlen(seen->log);

	(void)request;
	snprintf(seen->log + used, sizeof seen->log - used, "event %s;", json);
}

static void note_done(void *user, uint64_t request, int status, const char *json,
		      const struct coop_error *error)
{
	struct seen *seen = user;
	size_t used = strlen(seen->log);

	(void)request;
	seen->done++;
	seen->status = status;
	if (error)
		seen->error = *error;
	snprintf(seen->log + used, sizeof seen->log - used, "done %s;", json ? json : "-");
	if (seen->coop) {
		struct coop_error refused;
		struct coop_reply *reply;
		assert_int_equal(coop_call(seen->coop, "info", NULL, NULL, 0, &reply, &refused),
				 -EBUSY);
		assert_int_equal(coop_run(seen->coop, 0, NULL), -EBUSY);
	}
}

static uint64_t submit(struct fixture *f, struct seen *seen)
{
	struct coop_handler handler = {
		.data = note_data, .event = note_event, .done = note_done, .user = seen};
	uint64_t request = 0;

	assert_int_equal(coop_submit(f->coop, "info", NULL, NULL, 0, &handler, &request, NULL), 0);
	return request;
}

static void test_hello_is_taken(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(coop_keeper_pid(f->coop), 42);
	assert_string_equal(coop_keeper_version(f->coop), "0.9");
	assert_int_equal(coop_run(f->coop, 0, NULL), 0);
}

static void test_request_on_the_wire(void **state)
{
	struct fixture *f = *state;
	uint8_t bytes[512];
	struct coop_frame frame;
	size_t used, more;
	const char *why;
	uint64_t request;

	assert_int_equal(coop_submit(f->coop, "write_stdin", " {\"id\": \"x\"}\n", "hallo", 5, NULL,
				     &request, NULL),
			 0);
	ssize_t n = read(f->keeper, bytes, sizeof bytes);
	assert_true(n > 0);
	assert_int_equal(coop_frame_parse(bytes, (size_t)n, &frame, &used, &why), 1);
	static const char json[] =
		"{\"id\":1,\"op\":\"write_stdin\",\"args\": {\"id\": \"x\"}\n,\"data\":5}";
	assert_int_equal(frame.size, sizeof json - 1);
	assert_memory_equal(frame.bytes, json, frame.size);
	assert_int_equal(coop_frame_parse(bytes + used, (size_t)n - used, &frame, &more, &why), 1);
	assert_int_equal(frame.kind, COOP_FRAME_DATA);
	assert_int_equal(frame.request, request);
	assert_memory_equal(frame.bytes, "hallo", 5);
	assert_int_equal(used + more, (size_t)n);
}

static void test_bad_requests_are_refused_here(void **state)
{
	struct fixture *f = *state;
	struct coop_error error;
	char *big = calloc(1, COOP_SPAWN_DATA_MAX + 1);
	char *args = malloc(COOP_FRAME_JSON_MAX + 16);

	assert_non_null(big);
	assert_non_null(args);
	assert_int_equal(coop_submit(f->coop, "info", "[1]", NULL, 0, NULL, NULL, &error), -EINVAL);
	assert_string_equal(error.code, "invalid_input");
	assert_int_equal(coop_submit(f->coop, "info", "{\"a\":1} x", NULL, 0, NULL, NULL, &error),
			 -EINVAL);
	assert_int_equal(coop_submit(f->coop, "a\"b", NULL, NULL, 0, NULL, NULL, &error), -EINVAL);
	assert_int_equal(coop_submit(f->coop, "write_stdin", NULL, big, COOP_WRITE_STDIN_MAX + 1,
				     NULL, NULL, &error),
			 -EMSGSIZE);
	assert_string_equal(error.code, "too_large");
	for (const char *const *op = (const char *const[]){"spawn", "check", NULL}; *op; op++)
		assert_int_equal(coop_submit(f->coop, *op, NULL, big, COOP_SPAWN_DATA_MAX + 1, NULL,
					     NULL, &error),
				 -EMSGSIZE);
	memset(args, ' ', COOP_FRAME_JSON_MAX);
	memcpy(args, "{}", 2);
	args[COOP_FRAME_JSON_MAX] = 0;
	assert_int_equal(coop_submit(f->coop, "info", args, NULL, 0, NULL, NULL, &error),
			 -EMSGSIZE);
	assert_string_equal(error.code, "too_large");
	assert_int_equal(coop_pending(f->coop), 0);
	free(big);
	free(args);
}

static void test_order_of_callbacks(void **state)
{
	struct fixture *f = *state;
	struct seen a = {.coop = f->coop}, b = {0};
	uint64_t first = submit(f, &a), second = submit(f, &b);

	assert_true(first != second);
	assert_int_equal(coop_pending(f->coop), 2);
	send_data(f->keeper, second, 2, "err");
	send_json(f->keeper, "{\"id\": 2, \"event\": \"gap\", \"x\": \"}\"}");
	send_json(f->keeper, "{\"id\":2,\"error\":{\"code\":\"closed\",\"message\":\"no\","
			     "\"details\":{\"field\":\"id\"}}}");
	send_data(f->keeper, first, 1, "out");
	send_json(f->keeper, "{\"result\": {\"a\": [1, \"\\\"]\"]} , \"id\": 1}");
	assert_int_equal(coop_dispatch(f->coop, NULL), 5);
	assert_string_equal(a.log, "data 1 5 out;done {\"a\": [1, \"\\\"]\"]};");
	assert_string_equal(
		b.log, "data 2 5 err;event {\"id\": 2, \"event\": \"gap\", \"x\": \"}\"};done -;");
	assert_int_equal(b.status, -EREMOTEIO);
	assert_string_equal(b.error.code, "closed");
	assert_string_equal(b.error.details, "{\"field\":\"id\"}");
	assert_int_equal(coop_pending(f->coop), 0);
}

/* The same bytes, one at a time: no frame is lost and none is handled early. */
static void test_frames_in_pieces(void **state)
{
	struct fixture *f = *state;
	struct seen seen = {0};
	uint64_t request = submit(f, &seen);
	int pair[2], handled = 0;
	uint8_t bytes[256];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	send_data(pair[0], request, 1, "piece");
	send_json(pair[0], "{\"id\":1,\"result\":{}}");
	ssize_t n = read(pair[1], bytes, sizeof bytes);
	for (ssize_t i = 0; i < n; i++) {
		send_raw(f->keeper, bytes + i, 1);
		int r = coop_dispatch(f->coop, NULL);
		assert_true(r >= 0);
		handled += r;
	}
	assert_int_equal(handled, 2);
	assert_string_equal(seen.log, "data 1 5 piece;done {};");
	close(pair[0]);
	close(pair[1]);
}

static void test_end_of_connection_is_told(void **state)
{
	struct fixture *f = *state;
	struct seen a = {0}, b = {0};
	struct coop_error error;

	submit(f, &a);
	submit(f, &b);
	send_json(f->keeper, "{\"id\":1,\"result\":{}}");
	close(f->keeper);
	f->keeper = -1;
	int r;
	while ((r = coop_run(f->coop, 1000, &error)) > 0)
		;
	assert_int_equal(r, -EPIPE);
	assert_string_equal(error.code, "unreachable");
	assert_string_equal(a.log, "done {};");
	assert_int_equal(b.status, -EPIPE);
	assert_string_equal(b.error.code, "unreachable");
	assert_int_equal(coop_submit(f->coop, "info", NULL, NULL, 0, NULL, NULL, &error), -EPIPE);
	assert_int_equal(coop_dispatch(f->coop, &error), -EPIPE);
	assert_int_equal(coop_poll_events(f->coop), 0);
}

static void test_fatal_reason(void **state)
{
	struct fixture *f = *state;
	struct coop_error error;
	struct seen seen = {0};

	submit(f, &seen);
	send_json(f->keeper,
		  "{\"error\":{\"code\":\"too_large\",\"message\":\"big\",\"details\":{}},"
		  "\"fatal\":true}");
	assert_int_equal(coop_dispatch(f->coop, &error), -EPIPE);
	assert_string_equal(error.code, "too_large");
	assert_string_equal(seen.error.message, "big");
}

static void test_garbage_ends_it(void **state)
{
	struct fixture *f = *state;
	struct coop_error error;

	send_raw(f->keeper, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
	assert_int_equal(coop_dispatch(f->coop, &error), -EPIPE);
	assert_string_equal(error.code, "protocol");
}

/* Many open requests, answered backwards: ids and slots fit each other through every growth of
 * the table. */
static void test_many_requests(void **state)
{
	enum { MANY = 300 };
	struct fixture *f = *state;
	static struct seen seen[MANY];
	uint64_t requests[MANY];
	char json[64], drain[65536];

	memset(seen, 0, sizeof seen);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < MANY; i++)
			requests[i] = submit(f, &seen[i]);
		assert_int_equal(coop_pending(f->coop), MANY);
		assert_true(read(f->keeper, drain, sizeof drain) > 0);
		for (int i = MANY - 1; i >= 0; i--) {
			snprintf(json, sizeof json, "{\"id\":%d,\"result\":{}}", (int)requests[i]);
			send_json(f->keeper, json);
			assert_int_equal(coop_dispatch(f->coop, NULL), 1);
		}
	}
	for (int i = 0; i < MANY; i++)
		assert_int_equal(seen[i].done, 3);
	assert_int_equal(coop_pending(f->coop), 0);
}

static void test_cancel(void **state)
{
	struct fixture *f = *state;
	struct seen seen = {0};
	char bytes[256];

	assert_int_equal(coop_cancel(f->coop, 99), 0);
	uint64_t request = submit(f, &seen);
	assert_true(read(f->keeper, bytes, sizeof bytes) > 0);
	assert_int_equal(coop_cancel(f->coop, request), 0);
	ssize_t n = read(f->keeper, bytes, sizeof bytes);
	assert_int_equal(n, COOP_FRAME_HEADER + 12);
	assert_memory_equal(bytes + COOP_FRAME_HEADER, "{\"cancel\":1}", 12);
}

/* One whole call with the n-th allocation failing: an error, or success once n is past the last;
 * never worse. */
static int call_with_fault(struct coop *coop, int keeper, int n)
{
	static const char answer[] = "{\"id\":1,\"result\":{\"x\":1}}";
	struct coop_reply *reply = NULL;
	struct coop_error error = {0};
	char fault[32];

	send_json(keeper, "{\"hello\":{\"protocol\":1,\"version\":\"1\",\"pid\":1}}");
	send_data(keeper, 1, 1, "bytes");
	snprintf(fault, sizeof fault, "alloc:%d", n);
	setenv("COOP_FAULT", fault, 1);
	coop_mem_init();
	int r = coop_submit(coop, "info", "{}", NULL, 0, NULL, NULL, &error);
	if (r == 0) {
		send_json(keeper, answer);
		r = coop_run(coop, 1000, &error);
		r = r < 0 ? r : 0;
	}
	if (r == 0) {
		send_json(keeper, "{\"id\":2,\"result\":{\"y\":2}}");
		send_data(keeper, 2, 1, "late");
		r = coop_call(coop, "info", NULL, NULL, 0, &reply, &error);
	}
	unsetenv("COOP_FAULT");
	coop_mem_init();
	if (r == 0)
		assert_string_equal(coop_reply_json(reply), "{\"y\":2}");
	else
		assert_true(error.code[0] != 0);
	coop_reply_free(reply);
	return r;
}

static void test_without_memory(void **state)
{
	int n = 0, r = -1, failures = 0;

	(void)state;
	while (r < 0) {
		int pair[2];
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		struct coop *coop = coop_client_new(pair[0]);
		assert_non_null(coop);
		r = call_with_fault(coop, pair[1], ++n);
		failures += r < 0;
		assert_true(r == 0 || r == -ENOMEM || r == -EPIPE);
		coop_close(coop);
		close(pair[1]);
		assert_true(n < 100);
	}
	assert_true(failures >= 4);
}

static void test_scan(void **state)
{
	static const char *const bad[] = {"",          "[]",       "{",         "{\"a\"}",
					  "{\"a\":}",  "{\"a\":1", "{a:1}",     "{\"a\":1}x",
					  "{\"a\":{]", "\"{}\"",   "{\"a\":\"", "{\"a\":1 2}",
					  "{\"a\\"};
	char text[] = " { \"x\" : -1.5e3 , \"id\":7,\"a\":{\"id\":8},\"t\":\"q\\\"\" } ";
	struct coop_scan_member members[] = {{.name = "id"}, {.name = "t"}, {.name = "no"}};

	(void)state;
	assert_int_equal(coop_scan_object(text, strlen(text), members, 3), 0);
	assert_int_equal(members[0].size, 1);
	assert_int_equal(*members[0].value, '7');
	assert_int_equal(members[1].size, 5);
	assert_null(members[2].value);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		/* A copy of exact size, so that a sanitizer sees the first byte read too many. */
		size_t size = strlen(bad[i]);
		char *copy = malloc(size ? size : 1);
		assert_non_null(copy);
		memcpy(copy, bad[i], size);
		assert_int_equal(coop_scan_object(copy, size, members, 3), -EPROTO);
		free(copy);
	}
}

#define WITH_KEEPER(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_KEEPER(test_hello_is_taken),
		WITH_KEEPER(test_request_on_the_wire),
		WITH_KEEPER(test_bad_requests_are_refused_here),
		WITH_KEEPER(test_order_of_callbacks),
		WITH_KEEPER(test_frames_in_pieces),
		WITH_KEEPER(test_end_of_connection_is_told),
		WITH_KEEPER(test_fatal_reason),
		WITH_KEEPER(test_garbage_ends_it),
		WITH_KEEPER(test_many_requests),
		WITH_KEEPER(test_cancel),
		cmocka_unit_test(test_without_memory),
		cmocka_unit_test(test_scan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
