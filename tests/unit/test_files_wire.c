/* Frames between the gateway and coop-files, and the unpacking of gzip: bytes in, results out. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "doors/files/frame.h"
#include "doors/files/inflate.h"

static size_t make(uint8_t *place, uint32_t id, const char *json, const char *data)
{
	coop_files_frame_put(place, id, strlen(json), strlen(data));
	memcpy(place + COOP_FILES_FRAME_HEADER, json, strlen(json));
	memcpy(place + COOP_FILES_FRAME_HEADER + strlen(json), data, strlen(data));
	return COOP_FILES_FRAME_HEADER + strlen(json) + strlen(data);
}

static void both_ways(void **state)
{
	uint8_t bytes[256];
	struct coop_files_frame frame;
	size_t used = 0, size = make(bytes, 0xfedcba98u, "{\"op\":1}", "raw");

	(void)state;
	size += make(bytes + size, 7, "{}", "");
	for (size_t n = 0; n < 23; n++)
		assert_int_equal(coop_files_frame_parse(bytes, n, &frame, &used), 0);
	assert_int_equal(coop_files_frame_parse(bytes, size, &frame, &used), 1);
	assert_int_equal(used, 23);
	assert_int_equal(frame.id, 0xfedcba98u);
	assert_int_equal(frame.json_size, 8);
	assert_memory_equal(frame.json, "{\"op\":1}", 8);
	assert_int_equal(frame.size, 3);
	assert_memory_equal(frame.data, "raw", 3);
	assert_int_equal(coop_files_frame_parse(bytes + used, size - used, &frame, &used), 1);
	assert_int_equal(frame.id, 7);
	assert_int_equal(frame.size, 0);
	size = make(bytes, 8, "", "");
	assert_int_equal(coop_files_frame_parse(bytes, size, &frame, &used), 1);
	assert_int_equal(used, COOP_FILES_FRAME_HEADER);
	assert_int_equal(frame.json_size, 0);
}

/* A fault shows from the header alone. */
static void faults(void **state)
{
	static const uint8_t headers[][COOP_FILES_FRAME_HEADER] = {
		{11, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0},
		{0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0},
		{1, 0, 0x10, 0, 1, 0, 0, 0, 0, 0, 0, 0},
		{20, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0},
		{255, 255, 255, 255, 1, 0, 0, 0, 255, 255, 255, 255},
		{20, 0, 0, 0, 1, 0, 0, 0, 255, 255, 255, 255},
	};
	struct coop_files_frame frame;
	size_t used;

	(void)state;
	for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
		assert_int_equal(
			coop_files_frame_parse(headers[i], sizeof headers[i], &frame, &used),
			-EPROTO);
}

static void largest(void **state)
{
	static uint8_t bytes[COOP_FILES_FRAME_MAX];
	struct coop_files_frame frame;
	size_t used;

	(void)state;
	coop_files_frame_put(bytes, 1, 2, sizeof bytes - COOP_FILES_FRAME_HEADER - 2);
	assert_int_equal(coop_files_frame_parse(bytes, sizeof bytes, &frame, &used), 1);
	assert_int_equal(used, sizeof bytes);
}

/* One member that holds the text. */
static size_t pack(const void *text, size_t size, uint8_t *place, size_t room)
{
	z_stream stream = {0};

	assert_int_equal(
		deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	stream.next_in = (Bytef *)(uintptr_t)text;
	stream.avail_in = (uInt)size;
	stream.next_out = place;
	stream.avail_out = (uInt)room;
	assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
	(void)deflateEnd(&stream);
	return room - stream.avail_out;
}

/* Unpacks in pieces of `step` bytes in and out. 0 or the failure. */
static int unpack(const uint8_t *in, size_t size, size_t step, uint8_t *out, size_t *ret_size,
		  bool *ret_complete)
{
	struct files_inflate *inflate = files_inflate_new();
	size_t made = 0, at = 0, total = 0, used = 0;
	int r = 0;

	assert_non_null(inflate);
	while (r == 0 && (at < size || made == step)) {
		size_t part = size - at < step ? size - at : step;
		r = files_inflate_run(inflate, in + at, part, out + total, step, &used, &made);
		if (r == 0) {
			at += used;
			total += made;
		}
	}
	*ret_size = total;
	*ret_complete = files_inflate_complete(inflate);
	files_inflate_free(inflate);
	return r;
}

static void unpacked_in_pieces(void **state)
{
	static uint8_t text[5000], packed[8000], out[8000];
	size_t seam, size, made;
	bool complete;

	(void)state;
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = (uint8_t)(i * i / 7);
	seam = size = pack(text, sizeof text, packed, sizeof packed / 2);
	size += pack("tail", 4, packed + size, sizeof packed - size);
	for (size_t step = 1; step < 700; step += 13) {
		assert_int_equal(unpack(packed, size, step, out, &made, &complete), 0);
		assert_int_equal(made, sizeof text + 4);
		assert_memory_equal(out, text, sizeof text);
		assert_memory_equal(out + sizeof text, "tail", 4);
		assert_true(complete);
	}
	/* Where it is cut it is not complete, but at the seam of its members. */
	for (size_t cut = 0; cut < size; cut++) {
		assert_int_equal(unpack(packed, cut, 256, out, &made, &complete), 0);
		assert_true(complete == (cut == seam));
	}
}

static void no_gzip(void **state)
{
	uint8_t packed[256], out[1024];
	size_t size = pack("hello", 5, packed, sizeof packed), made;
	bool complete;

	(void)state;
	assert_int_equal(unpack((const uint8_t *)"plain text", 10, 64, out, &made, &complete),
			 -EBADMSG);
	packed[size - 6] ^= 1;
	assert_int_equal(unpack(packed, size, 64, out, &made, &complete), -EBADMSG);
	packed[size - 6] ^= 1;
	memcpy(packed + size, "garbage", 7);
	assert_int_equal(unpack(packed, size + 7, 64, out, &made, &complete), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ways), cmocka_unit_test(faults),
		cmocka_unit_test(largest),   cmocka_unit_test(unpacked_in_pieces),
		cmocka_unit_test(no_gzip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
