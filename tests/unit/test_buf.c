/* The byte buffer: what goes in at the end comes out at the front, whatever the sizes, and without
 * memory nothing changes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"

static void starts_empty(void **state)
{
	struct coop_buf buf = {0};

	assert_int_equal(coop_buf_size(&buf), 0);
	assert_int_equal(coop_buf_append(&buf, NULL, 0), 0);
	assert_non_null(coop_buf_reserve(&buf, 0));
	coop_buf_clear(&buf);
	coop_buf_clear(&buf);
	assert_null(buf.data);
}

/* The n-th byte is n modulo 251, on both sides; chunk sizes that have nothing to do with each other
 * make every way of moving and growing happen. */
static void keeps_order(void **state)
{
	struct coop_buf buf = {0};
	size_t in = 0, out = 0;

	for (size_t round = 0; round < 2000; round++) {
		uint8_t chunk[1021];
		size_t size = round * 37 % sizeof chunk;
		for (size_t i = 0; i < size; i++)
			chunk[i] = (uint8_t)((in + i) % 251);
		assert_int_equal(coop_buf_append(&buf, chunk, size), 0);
		in += size;
		assert_int_equal(coop_buf_size(&buf), in - out);
		size_t take = round * 53 % 1100;
		if (take > coop_buf_size(&buf))
			take = coop_buf_size(&buf);
		for (size_t i = 0; i < take; i++)
			assert_int_equal(coop_buf_front(&buf)[i], (out + i) % 251);
		coop_buf_consume(&buf, take);
		out += take;
	}
	coop_buf_clear(&buf);
}

static void returns_memory(void **state)
{
	struct coop_buf buf = {0};

	assert_non_null(coop_buf_reserve(&buf, 1 << 20));
	coop_buf_commit(&buf, 1 << 20);
	coop_buf_consume(&buf, (1 << 20) - 1);
	assert_non_null(buf.data);
	coop_buf_consume(&buf, 1);
	assert_null(buf.data);
	coop_buf_clear(&buf);
}

/* A large buffer that is almost empty gives memory back, and keeps its bytes. */
static void fits(void **state)
{
	struct coop_buf buf = {0};
	size_t size = 1 << 20;

	(void)state;
	coop_buf_fit(&buf);
	uint8_t *place = coop_buf_reserve(&buf, size);
	for (size_t i = 0; i < size; i++)
		place[i] = (uint8_t)(i % 251);
	coop_buf_commit(&buf, size);
	coop_buf_fit(&buf);
	assert_true(buf.capacity >= size);
	coop_buf_consume(&buf, size - 100000);
	coop_buf_fit(&buf);
	assert_true(buf.capacity < size / 4);
	assert_int_equal(coop_buf_size(&buf), 100000);
	for (size_t i = 0; i < 100000; i++)
		assert_int_equal(coop_buf_front(&buf)[i], (size - 100000 + i) % 251);
	coop_buf_clear(&buf);
}

static void no_memory(void **state)
{
	struct coop_buf buf = {0};

	assert_int_equal(coop_buf_append(&buf, "abc", 3), 0);
	assert_null(coop_buf_reserve(&buf, SIZE_MAX));
	assert_null(coop_buf_reserve(&buf, SIZE_MAX - 3));
	(void)setenv("COOP_FAULT", "alloc:1", 1);
	coop_mem_init();
	uint8_t large[4096] = {0};
	assert_int_equal(coop_buf_append(&buf, large, sizeof large), -ENOMEM);
	(void)unsetenv("COOP_FAULT");
	coop_mem_init();
	assert_int_equal(coop_buf_size(&buf), 3);
	assert_memory_equal(coop_buf_front(&buf), "abc", 3);
	assert_int_equal(coop_buf_append(&buf, large, sizeof large), 0);
	coop_buf_clear(&buf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(starts_empty),   cmocka_unit_test(keeps_order),
		cmocka_unit_test(returns_memory), cmocka_unit_test(fits),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
