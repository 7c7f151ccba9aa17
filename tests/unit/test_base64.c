/* Base64: what the encoder writes is read back, and nothing else is; every way of encoding writes
 * the same. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text/base64.h"
#include "base/text/base64_encoders.h"

#define LENGTH_MAX 4096u
#define ALIGNMENTS 32u

static void both_ways(void **state)
{
	uint8_t bytes[300], back[300];
	char text[400];
	size_t size;

	(void)state;
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
	for (size_t n = 0; n <= sizeof bytes; n++) {
		size_t length = coop_base64_length(n);
		coop_base64_encode(bytes, n, text);
		assert_true(coop_base64_room(length) >= n && coop_base64_room(length) <= n + 2);
		memset(back, 0, sizeof back);
		assert_int_equal(coop_base64_decode(text, length, back, &size), 0);
		assert_int_equal(size, n);
		assert_memory_equal(back, bytes, n);
	}
}

static void known(void **state)
{
	static const struct {
		const char *text, *bytes;
	} rows[] = {{"", ""},        {"Zg==", "f"},        {"Zm8=", "fo"},
		    {"Zm9v", "foo"}, {"Zm9vYg==", "foob"}, {"/+8/", "\xff\xef\x3f"}};
	char back[16];
	size_t size;

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		assert_int_equal(
			coop_base64_decode(rows[i].text, strlen(rows[i].text), back, &size), 0);
		assert_int_equal(size, strlen(rows[i].bytes));
		assert_memory_equal(back, rows[i].bytes, size);
	}
}

static void refused(void **state)
{
	/* Too short, padding in the wrong place or alone, other alphabets, white space, bits that
	 * get lost. */
	static const char *const texts[] = {"Z",
					    "Zg",
					    "Zg=",
					    "Zm9v=",
					    "=",
					    "====",
					    "Z===",
					    "Zg==Zg==",
					    "Z=g=",
					    "Zm9v\n",
					    "Zm 9",
					    "Zm9-",
					    "Zm_v",
					    "Zh==",
					    "Zm9=",
					    ("\xc3\xa4"
					     "aa")};
	char back[16];
	size_t size;

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		if (coop_base64_decode(texts[i], strlen(texts[i]), back, &size) != -EINVAL)
			fail_msg("taken: %s", texts[i]);
	}
}

/* One bit at a time, without a table of groups. */
static void encode_slowly(const uint8_t *bytes, size_t size, char *text)
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t bits = size * 8, at = 0;

	for (size_t bit = 0; bit < bits; bit += 6) {
		unsigned value = 0;
		for (size_t i = bit; i < bit + 6; i++)
			value = value << 1 | (i < bits ? bytes[i / 8] >> (7 - i % 8) & 1u : 0u);
		text[at++] = alphabet[value];
	}
	while (at % 4)
		text[at++] = '=';
}

/* Memory that ends at a page which cannot be touched. */
static uint8_t *guarded(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (size + page - 1) / page * page;
	uint8_t *place = mmap(NULL, whole + page, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(place != MAP_FAILED);
	assert_int_equal(mprotect(place + whole, page, PROT_NONE), 0);
	return place + whole;
}

static void check(const struct coop_base64_encoder *encoder, const uint8_t *bytes, size_t size,
		  const char *expected, char *text)
{
	size_t length = coop_base64_length(size);

	memset(text - 1, '#', length + 1);
	if (encoder)
		coop_base64_encode_with(encoder, bytes, size, text);
	else
		coop_base64_encode(bytes, size, text);
	if (text[-1] != '#' || memcmp(text, expected, length) != 0)
		fail_msg("%s differs at %zu bytes", encoder ? encoder->name : "the default", size);
}

/* Every length, up against the end of memory, and elsewhere at places of every alignment. */
static void every_way(void **state)
{
	static char expected[LENGTH_MAX * 2];
	uint8_t *bytes_end = guarded(LENGTH_MAX + ALIGNMENTS);
	char *text_end = (char *)guarded(LENGTH_MAX * 2);
	uint8_t *start = bytes_end - LENGTH_MAX - ALIGNMENTS;
	uint64_t random = 88172645463325252u;

	(void)state;
	for (size_t i = 0; i < LENGTH_MAX + ALIGNMENTS; i++) {
		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		start[i] = (uint8_t)random;
	}
	for (size_t size = 0; size <= LENGTH_MAX; size++) {
		for (unsigned k = 0; k < 4; k++) {
			const uint8_t *bytes = k == 0 ? bytes_end - size
						      : start + (size * 5 + k * 11) % ALIGNMENTS;
			char *text = text_end - coop_base64_length(size) - k * (size % 29);
			encode_slowly(bytes, size, expected);
			check(NULL, bytes, size, expected, text);
			for (const struct coop_base64_encoder *e = coop_base64_encoders; e->name;
			     e++) {
				if (e->usable())
					check(e, bytes, size, expected, text);
			}
		}
	}
}

/* Each field of a group takes every value, at every place of a vector. */
static void every_value(void **state)
{
	uint8_t bytes[96];
	char expected[128], text[129];

	(void)state;
	for (unsigned value = 0; value < 256; value++) {
		for (size_t place = 0; place < sizeof bytes; place++) {
			memset(bytes, (int)(255 - value), sizeof bytes);
			bytes[place] = (uint8_t)value;
			encode_slowly(bytes, sizeof bytes, expected);
			for (const struct coop_base64_encoder *e = coop_base64_encoders; e->name;
			     e++) {
				if (e->usable())
					check(e, bytes, sizeof bytes, expected, text + 1);
			}
		}
	}
}

/* Of all characters exactly 64 are taken, wherever they stand. */
static void every_character(void **state)
{
	uint8_t back[12];
	size_t size;

	(void)state;
	for (unsigned place = 0; place < 12; place++) {
		unsigned taken = 0;
		for (unsigned c = 0; c < 256; c++) {
			char text[13] = "AAAAAAAAAAAA";
			text[place] = (char)c;
			taken += coop_base64_decode(text, 12, back, &size) == 0;
		}
		/* At the very end a padding is right, too. */
		assert_int_equal(taken, place == 11 ? 65 : 64);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ways),   cmocka_unit_test(known),
		cmocka_unit_test(refused),     cmocka_unit_test(every_way),
		cmocka_unit_test(every_value), cmocka_unit_test(every_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
