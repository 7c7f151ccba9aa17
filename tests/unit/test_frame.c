/* The frame parser: whole frames, frames in pieces, and everything that is not a frame. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "interface/frame.h"

static int parse(const uint8_t *bytes, size_t size)
{
	struct coop_frame frame;
	size_t used;
	const char *why = NULL;
	int r = coop_frame_parse(bytes, size, &frame, &used, &why);

	/* A refusal always says why, anything else never does. */
	assert_true((r < 0) == (why != NULL));
	return r;
}

static void json_frame(void **state)
{
	uint8_t bytes[COOP_FRAME_HEADER + 3];
	struct coop_frame frame;
	size_t used = 0;
	const char *why = NULL;

	coop_frame_put_json(bytes, 2);
	memcpy(bytes + COOP_FRAME_HEADER, "{}x", 3);
	for (size_t size = 0; size < COOP_FRAME_HEADER + 2; size++)
		assert_int_equal(parse(bytes, size), 0);
	assert_int_equal(coop_frame_parse(bytes, sizeof bytes, &frame, &used, &why), 1);
	assert_int_equal(used, COOP_FRAME_HEADER + 2);
	assert_int_equal(frame.kind, COOP_FRAME_JSON);
	assert_int_equal(frame.size, 2);
	assert_memory_equal(frame.bytes, "{}", 2);
}

static void data_frame(void **state)
{
	const struct coop_frame put = {
		.stream = 2,
		.request = (UINT64_C(1) << 53) - 1,
		.offset = UINT64_MAX - 1,
		.cursor = COOP_FRAME_NO_CURSOR,
		.size = 4,
	};
	uint8_t bytes[COOP_FRAME_DATA_HEADER + 4];
	struct coop_frame got;
	size_t used = 0;
	const char *why = NULL;

	coop_frame_put_data(bytes, &put);
	memcpy(bytes + COOP_FRAME_DATA_HEADER, "\0\xff\n ", 4);
	for (size_t size = 0; size < sizeof bytes; size++)
		assert_int_equal(parse(bytes, size), 0);
	assert_int_equal(coop_frame_parse(bytes, sizeof bytes, &got, &used, &why), 1);
	assert_int_equal(used, sizeof bytes);
	assert_int_equal(got.kind, COOP_FRAME_DATA);
	assert_int_equal(got.stream, put.stream);
	assert_true(got.request == put.request && got.offset == put.offset &&
		    got.cursor == put.cursor);
	assert_int_equal(got.size, put.size);
	assert_memory_equal(got.bytes, "\0\xff\n ", 4);
}

/* A fault shows as soon as the header is there: nobody buffers 4 GiB to find out. */
static void faults(void **state)
{
	static const struct {
		uint8_t header[COOP_FRAME_HEADER];
		int expected;
	} cases[] = {
		{{2, 0, 0, 0, 'J', 0, 0, 0}, 0},
		{{0, 0, 0, 0, 'J', 0, 0, 0}, -EPROTO},
		{{2, 0, 0, 0, 'J', 1, 0, 0}, -EPROTO},
		{{2, 0, 0, 0, 'J', 0, 1, 0}, -EPROTO},
		{{2, 0, 0, 0, 'J', 0, 0, 1}, -EPROTO},
		{{2, 0, 0, 0, 'X', 0, 0, 0}, -EPROTO},
		{{0, 0, 0x80, 0, 'J', 0, 0, 0}, 0},
		{{1, 0, 0x80, 0, 'J', 0, 0, 0}, -EMSGSIZE},
		{{0xff, 0xff, 0xff, 0xff, 'J', 0, 0, 0}, -EMSGSIZE},
		{{24, 0, 0, 0, 'D', 0, 0, 0}, 0},
		{{23, 0, 0, 0, 'D', 0, 0, 0}, -EPROTO},
		{{24, 0, 0, 0, 'D', 4, 0, 0}, 0},
		{{24, 0, 0, 0, 'D', 5, 0, 0}, -EPROTO},
		{{24, 0, 0x10, 0, 'D', 3, 0, 0}, 0},
		{{25, 0, 0x10, 0, 'D', 3, 0, 0}, -EMSGSIZE},
		{{0xff, 0xff, 0xff, 0xff, 'D', 3, 0, 0}, -EMSGSIZE},
	};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		assert_int_equal(parse(cases[i].header, COOP_FRAME_HEADER - 1), 0);
		assert_int_equal(parse(cases[i].header, COOP_FRAME_HEADER), cases[i].expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(json_frame),
		cmocka_unit_test(data_frame),
		cmocka_unit_test(faults),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
