/* What waits to be sent: copies and shared pieces in order, whatever the kernel takes at a time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "doors/http/net/failures.h"
#include "doors/http/net/out.h"
#include "doors/http/net/target.h"

/* Takes up to `size` bytes off the front, as a socket would. */
static size_t drain(struct coop_out *out, char *ret, size_t size)
{
	struct iovec iov[COOP_OUT_IOV];
	unsigned count = coop_out_front(out, iov);
	size_t taken = 0;

	for (unsigned i = 0; i < count && taken < size; i++) {
		size_t part = iov[i].iov_len < size - taken ? iov[i].iov_len : size - taken;
		memcpy(ret + taken, iov[i].iov_base, part);
		taken += part;
	}
	coop_out_consume(out, taken);
	return taken;
}

static void keeps_the_order(void **state)
{
	static char expected[200000], got[200000];
	size_t want = 0;

	(void)state;
	for (size_t step = 1; step < 5000; step = step * 3 + 1) {
		struct coop_out out = {0};
		size_t have = 0;
		want = 0;
		for (unsigned i = 0; i < 300; i++) {
			char text[64];
			size_t size = (i * 7) % 61;
			memset(text, 'a' + (int)(i % 26), sizeof text);
			if (i % 5 == 4) {
				struct coop_http_shared *block = coop_shared_new(64);
				memcpy(block->data, text, 64);
				block->size = 64;
				assert_int_equal(coop_out_share(&out, block, 1, 1 + size), 0);
				coop_shared_unref(block);
			} else {
				assert_int_equal(coop_out_copy(&out, text, size, i % 3 == 0), 0);
			}
			memcpy(expected + want, text, size);
			want += size;
			if (i % 11 == 0)
				have += drain(&out, got + have, step);
			assert_int_equal(out.bytes, want - have);
		}
		while (out.bytes)
			have += drain(&out, got + have, step);
		assert_int_equal(have, want);
		assert_memory_equal(got, expected, want);
		assert_int_equal(out.answers, 0);
		assert_null(out.pieces);
	}
}

/* The same bytes for many readers stay one block. */
static void shares(void **state)
{
	struct coop_http_shared *block = coop_shared_new(16);
	struct coop_out out[3] = {0};
	char got[16];

	(void)state;
	memcpy(block->data, "0123456789abcdef", 16);
	block->size = 16;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(coop_out_share(&out[i], block, 0, 4), 0);
		assert_int_equal(coop_out_share(&out[i], block, 4, 16), 0);
		assert_int_equal(out[i].count, 1);
	}
	assert_int_equal(block->refs, 4);
	for (int i = 0; i < 3; i++)
		assert_int_equal(drain(&out[i], got, 16), 16);
	assert_int_equal(block->refs, 1);
	assert_memory_equal(got, "0123456789abcdef", 16);
	coop_shared_unref(block);
}

static void counts_answers(void **state)
{
	struct coop_out out = {0};
	char got[64];

	(void)state;
	assert_int_equal(coop_out_copy(&out, "data", 4, false), 0);
	assert_int_equal(coop_out_copy(&out, "pong", 4, true), 0);
	assert_int_equal(out.answers, 4);
	assert_int_equal(drain(&out, got, 6), 6);
	assert_int_equal(out.answers, 2);
	coop_out_clear(&out);
	assert_int_equal(out.bytes, 0);
}

static void guessing_is_slow(void **state)
{
	static struct coop_failures failures;
	uint64_t now = 1000000;

	(void)state;
	for (unsigned i = 0; i < COOP_FAILURES_BURST; i++) {
		assert_false(coop_failures_too_many(&failures, 7, now));
		coop_failures_add(&failures, 7, now);
	}
	/* One is let through, the next one is not, until a moment has passed. */
	assert_false(coop_failures_too_many(&failures, 7, now));
	assert_true(coop_failures_too_many(&failures, 7, now));
	assert_true(coop_failures_too_many(&failures, 7, now + COOP_FAILURES_TRICKLE_MS - 1));
	assert_false(coop_failures_too_many(&failures, 8, now));
	assert_false(coop_failures_too_many(&failures, 7, now + COOP_FAILURES_MS));
	coop_failures_add(&failures, 7, now + COOP_FAILURES_MS);
	assert_false(coop_failures_too_many(&failures, 7, now + COOP_FAILURES_MS));
	assert_true(coop_failures_too_many(&failures, 7, now + COOP_FAILURES_MS));
	assert_false(coop_failures_too_many(&failures, 7, now + 1000 * COOP_FAILURES_MS));
}

static void reads_queries(void **state)
{
	const char *query =
		"a=1%26b&c=x+y&a=2&empty=&flag&n=18446744073709551615&%62=z&bad=%zz&nul=%00";
	uint64_t number = 5;
	bool yes = true;
	int status;

	(void)state;
	struct {
		const char *name, *value;
		int status;
	} rows[] = {{"a", "1&b", 0}, {"c", "x y", 0},    {"empty", "", 0},   {"flag", "", 0},
		    {"b", "z", 0},   {"bad", NULL, -22}, {"nul", NULL, -22}, {"none", NULL, 0}};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char *value = coop_query_get(query, rows[i].name, &status);
		assert_int_equal(status, rows[i].status);
		if (rows[i].value)
			assert_string_equal(value, rows[i].value);
		else
			assert_null(value);
		free(value);
	}
	assert_int_equal(coop_query_uint(query, "n", UINT64_MAX, &number), 1);
	assert_true(number == UINT64_MAX);
	assert_int_equal(coop_query_uint(query, "n", UINT64_MAX - 1, &number), -22);
	assert_int_equal(coop_query_uint("n=9&m=-1&e=", "n", 8, &number), -22);
	assert_int_equal(coop_query_uint("n=9&m=-1&e=", "m", 8, &number), -22);
	assert_int_equal(coop_query_uint("n=9&m=-1&e=", "e", 8, &number), -22);
	assert_int_equal(coop_query_uint("n=9", "x", 8, &number), 0);
	assert_int_equal(coop_query_bool("t=true&f=false&x=1", "f", &yes), 1);
	assert_false(yes);
	assert_int_equal(coop_query_bool("t=true&f=false&x=1", "x", &yes), -22);
}

/* Without memory a parameter is not taken for one that is absent. */
static void finds_parameters_without_memory(void **state)
{
	uint64_t number = 0;
	bool yes = false;
	int status;

	(void)state;
	setenv("COOP_FAULT", "alloc:1:1", 1);
	coop_mem_init();
	int has_number = coop_query_uint("a=1&sin%63e=7", "since", 8, &number);
	int has_bool = coop_query_bool("all=true", "all", &yes);
	char *value = coop_query_get("mode=tail", "mode", &status);
	unsetenv("COOP_FAULT");
	coop_mem_init();
	assert_int_equal(has_number, 1);
	assert_int_equal(number, 7);
	assert_int_equal(has_bool, 1);
	assert_true(yes);
	assert_null(value);
	assert_int_equal(status, -12);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_the_order),
		cmocka_unit_test(shares),
		cmocka_unit_test(counts_answers),
		cmocka_unit_test(guessing_is_slow),
		cmocka_unit_test(reads_queries),
		cmocka_unit_test(finds_parameters_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
