/* Calls on connections of a loop, against keepers that the test plays itself: who waits for room
 * and who is refused, that an end is told once and never from within, and what becomes of a call
 * that is given up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/loop/calls.h"
#include "interface/frame.h"

#define KEEPERS 2
#define OPEN_MAX 3
#define STANDING_MAX 1
#define WAITING_MAX 2

struct fixture {
	uv_loop_t loop;
	struct coop_calls *calls;
	int keepers[KEEPERS]; /* the other ends */
	int count;
	bool coming; /* a connection that is asked for is on its way */
	int lost;
	bool closed, held;
};

struct seen {
	int done, status;
	char code[32];
};

static bool want(void *user, struct coop_error *error)
{
	const struct fixture *f = user;

	*error = (struct coop_error){"unreachable", "nobody is there", "{}"};
	return f->coming;
}

static void lost(void *user, const struct coop_error *error)
{
	struct fixture *f = user;

	(void)error;
	f->lost++;
}

static const struct coop_error why = {"unreachable", "all is over", "{}"};

static void held(void *user, bool any)
{
	struct fixture *f = user;

	f->held = any;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof *f);

	if (!f || uv_loop_init(&f->loop) < 0)
		return -1;
	const struct coop_calls_options options = {.open_max = OPEN_MAX,
						   .standing_max = STANDING_MAX,
						   .waiting_max = WAITING_MAX,
						   .want = want,
						   .lost = lost,
						   .held = held,
						   .user = f};
	f->calls = coop_calls_new(&f->loop, &options);
	*state = f;
	return f->calls ? 0 : -1;
}

static void on_closed(void *user)
{
	struct fixture *f = user;

	f->closed = true;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	if (f->calls)
		coop_calls_close(f->calls, &why, on_closed, f);
	(void)uv_run(&f->loop, UV_RUN_DEFAULT);
	for (int i = 0; i < f->count; i++)
		(void)close(f->keepers[i]);
	int r = f->closed ? uv_loop_close(&f->loop) : -1;
	free(f);
	return r;
}

static void run(struct fixture *f)
{
	for (int i = 0; i < 4; i++)
		(void)uv_run(&f->loop, UV_RUN_NOWAIT);
}

static void send_json(int fd, const char *json)
{
	uint8_t frame[512];
	size_t size = strlen(json);

	coop_frame_put_json(frame, size);
	memcpy(frame + COOP_FRAME_HEADER, json, size);
	assert_int_equal(write(fd, frame, COOP_FRAME_HEADER + size),
			 (ssize_t)(COOP_FRAME_HEADER + size));
}

static void answer(struct fixture *f, int keeper, uint64_t request)
{
	char json[64];

	(void)snprintf(json, sizeof json, "{\"id\": %llu, \"result\": {}}",
		       (unsigned long long)request);
	send_json(f->keepers[keeper], json);
	run(f);
}

/* A connection comes. Returns its number. */
static int connect_one(struct fixture *f)
{
	const struct coop_uplink_owner nobody = {0};
	struct coop_uplink *uplink;
	struct coop *coop;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	f->keepers[f->count] = pair[1];
	send_json(pair[1], "{\"hello\": {\"protocol\": 1, \"version\": \"0.9\", \"pid\": 42}}");
	assert_int_equal(coop_open_fd(pair[0], &coop, NULL), 0);
	assert_int_equal(coop_uplink_new(&f->loop, coop, &nobody, &uplink), 0);
	assert_int_equal(coop_calls_add(f->calls, uplink), 0);
	run(f);
	return f->count++;
}

/* What the keeper has been sent since, as text: how many requests name that operation. */
static int sent(struct fixture *f, int keeper, const char *op)
{
	char bytes[4096], name[64];
	ssize_t n = read(f->keepers[keeper], bytes, sizeof bytes);
	int count = 0;

	(void)snprintf(name, sizeof name, "\"op\":\"%s\"", op);
	for (const char *at = bytes; n > 0; count++) {
		at = memmem(at, (size_t)(bytes + n - at), name, strlen(name));
		if (!at)
			break;
		at += strlen(name);
	}
	return count;
}

static void on_done(void *user, uint64_t request, int status, const char *json,
		    const struct coop_error *error)
{
	struct seen *seen = user;

	(void)request;
	(void)json;
	seen->done++;
	seen->status = status;
	(void)snprintf(seen->code, sizeof seen->code, "%s", error ? error->code : "");
}

static struct coop_call *begin(struct fixture *f, const char *op, struct seen *seen)
{
	const struct coop_handler handler = {.done = on_done, .user = seen};
	struct coop_call *call = coop_calls_begin(f->calls, op, json_object(), NULL, 0, &handler);

	assert_non_null(call);
	assert_int_equal(seen->done, 0);
	run(f);
	return call;
}

static void check(const struct seen *seen, int status, const char *code)
{
	assert_int_equal(seen->done, 1);
	assert_int_equal(seen->status, status);
	assert_string_equal(seen->code, code);
}

/* Before there is any connection, and when the first one comes. */
static void first(void **state)
{
	struct fixture *f = *state;
	struct seen none = {0}, waits[WAITING_MAX] = {0}, more = {0};

	begin(f, "info", &none);
	check(&none, -EIO, "unreachable");
	f->coming = true;
	for (int i = 0; i < WAITING_MAX; i++)
		begin(f, "info", &waits[i]);
	begin(f, "info", &more);
	check(&more, -EIO, "quota");
	int keeper = connect_one(f);
	assert_int_equal(sent(f, keeper, "info"), WAITING_MAX);
	for (uint64_t i = 0; i < WAITING_MAX; i++) {
		assert_int_equal(waits[i].done, 0);
		answer(f, keeper, i + 1);
		check(&waits[i], 0, "");
	}
}

/* Those that may wait as long as they like leave room for the others, and are refused rather than
 * queued where no connection is coming. */
static void room(void **state)
{
	struct fixture *f = *state;
	static struct seen follow, second; /* told when all is over */
	struct seen refused = {0}, info[OPEN_MAX] = {0};
	int keeper = connect_one(f);

	begin(f, "follow", &follow);
	begin(f, "follow", &refused);
	check(&refused, -EIO, "quota");
	for (int i = 0; i < OPEN_MAX; i++)
		begin(f, "info", &info[i]);
	assert_int_equal(sent(f, keeper, "info"), OPEN_MAX - 1);
	for (uint64_t i = 0; i < OPEN_MAX; i++) {
		answer(f, keeper, i + 2);
		check(&info[i], 0, "");
	}
	assert_int_equal(sent(f, keeper, "info"), 1);
	f->coming = true;
	begin(f, "follow", &second);
	int other = connect_one(f);
	assert_int_equal(sent(f, other, "follow"), 1);
	assert_int_equal(second.done + follow.done, 0);
}

static void given_up(void **state)
{
	struct fixture *f = *state;
	struct seen open = {0}, waiting = {0};

	f->coming = true;
	coop_calls_drop(begin(f, "info", &waiting));
	int keeper = connect_one(f);
	assert_int_equal(sent(f, keeper, "info"), 0);
	coop_calls_drop(begin(f, "info", &open));
	run(f);
	assert_int_equal(sent(f, keeper, "info"), 1);
	assert_true(f->held);
	answer(f, keeper, 1);
	assert_int_equal(open.done + waiting.done, 0);
	assert_false(f->held);
}

/* The keeper goes: what is open is told so, what waits as well where nobody else comes. */
static void ended(void **state)
{
	struct fixture *f = *state;
	struct seen calls[OPEN_MAX + 1] = {0}, later = {0};
	int keeper = connect_one(f);

	for (int i = 0; i <= OPEN_MAX; i++)
		begin(f, "info", &calls[i]);
	assert_int_equal(shutdown(f->keepers[keeper], SHUT_RDWR), 0);
	run(f);
	assert_int_equal(f->lost, 1);
	assert_int_equal(coop_calls_uplinks(f->calls), 0);
	for (int i = 0; i < OPEN_MAX; i++)
		check(&calls[i], -EPIPE, "unreachable");
	check(&calls[OPEN_MAX], -EIO, "unreachable");
	f->coming = true;
	begin(f, "info", &later);
	const struct coop_error none = {"permission_denied", "no", "{}"};
	coop_calls_fail(f->calls, &none);
	assert_int_equal(later.done, 0);
	run(f);
	check(&later, -EIO, "permission_denied");
}

static void closed(void **state)
{
	struct fixture *f = *state;
	const struct coop_handler nobody = {0};
	struct seen open = {0}, waiting = {0};
	int keeper = connect_one(f);

	f->coming = true;
	begin(f, "follow", &open);
	begin(f, "follow", &waiting);
	assert_int_equal(sent(f, keeper, "follow"), 1);
	assert_true(f->held);
	coop_calls_close(f->calls, &why, on_closed, f);
	check(&open, -EPIPE, "unreachable");
	check(&waiting, -EPIPE, "unreachable");
	assert_null(coop_calls_begin(f->calls, "info", NULL, NULL, 0, &nobody));
	f->calls = NULL;
	run(f);
	assert_true(f->closed);
	assert_int_equal(open.done + waiting.done, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(first, set_up, tear_down),
		cmocka_unit_test_setup_teardown(room, set_up, tear_down),
		cmocka_unit_test_setup_teardown(given_up, set_up, tear_down),
		cmocka_unit_test_setup_teardown(ended, set_up, tear_down),
		cmocka_unit_test_setup_teardown(closed, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
