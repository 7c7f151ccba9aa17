/* Output of a process as a text frame: base64 with JSON around it.
 *
 *     base64_frame floor|coop|plain SIZE TOTAL
 *
 * Frames TOTAL bytes in chunks of SIZE and prints the nanoseconds that it took. `coop` encodes as
 * the gateway does; `plain` without vector instructions; `floor` with a loop of AVX2 that does
 * nothing but its work: nothing is chosen at run time, and the chunk is the beginning of a longer
 * one, so that no end has to be looked after. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/base64.h"
#include "base/text/base64_encoders.h"
#include "bench.h"

#define ROOM 256u /* for what is around the bytes, and for loads and stores past their end */

static size_t put(char *at, const char *text)
{
	size_t size = strlen(text);

	memcpy(at, text, size);
	return size;
}

static size_t put_number(char *at, uint64_t number)
{
	char digits[20];
	size_t count = 0;

	do {
		digits[sizeof digits - ++count] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	memcpy(at, digits + sizeof digits - count, count);
	return count;
}

#ifdef __x86_64__
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

AVX2 static void encode_floor(const void *data, size_t size, char *text)
{
	const __m256i spread = _mm256_setr_epi8(1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10,
						1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10);
	const __m256i distances =
		_mm256_setr_epi8(71, -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -19, -16, 65, 0, 0, 71,
				 -4, -4, -4, -4, -4, -4, -4, -4, -4, -4, -19, -16, 65, 0, 0);
	const uint8_t *in = data, *end = in + size;

	for (; in < end; in += 24, text += 32) {
		__m256i x = _mm256_castsi128_si256(_mm_loadu_si128((const void *)in));
		x = _mm256_inserti128_si256(x, _mm_loadu_si128((const void *)(in + 12)), 1);
		x = _mm256_shuffle_epi8(x, spread);
		__m256i odd = _mm256_mulhi_epu16(_mm256_and_si256(x, _mm256_set1_epi32(0x0fc0fc00)),
						 _mm256_set1_epi32(0x04000040));
		__m256i even =
			_mm256_mullo_epi16(_mm256_and_si256(x, _mm256_set1_epi32(0x003f03f0)),
					   _mm256_set1_epi32(0x01000010));
		x = _mm256_or_si256(odd, even);
		__m256i upper = _mm256_and_si256(_mm256_cmpgt_epi8(_mm256_set1_epi8(26), x),
						 _mm256_set1_epi8(13));
		__m256i range = _mm256_or_si256(_mm256_subs_epu8(x, _mm256_set1_epi8(51)), upper);
		x = _mm256_add_epi8(x, _mm256_shuffle_epi8(distances, range));
		_mm256_storeu_si256((void *)text, x);
	}
}

static bool floor_usable(void)
{
	return __builtin_cpu_supports("avx2");
}
#else
static void encode_floor(const void *data, size_t size, char *text)
{
	coop_base64_encode(data, size, text);
}

static bool floor_usable(void)
{
	return false;
}
#endif

static void encode_plain(const void *data, size_t size, char *text)
{
	const struct coop_base64_encoder *encoder = coop_base64_encoders;

	while (encoder[1].name)
		encoder++;
	coop_base64_encode_with(encoder, data, size, text);
}

typedef void encode_function(const void *data, size_t size, char *text);

static size_t frame(encode_function *encode, const uint8_t *data, size_t size, uint64_t cursor,
		    char *ret)
{
	size_t length = coop_base64_length(size), at = 0;

	at += put(ret + at, "{\"type\":\"stdout\",\"data\":\"");
	encode(data, size, ret + at);
	at += length;
	at += put(ret + at, "\",\"cursor\":");
	at += put_number(ret + at, cursor);
	at += put(ret + at, ",\"pid\":\"psh-1a2f-17\"}");
	return at;
}

static encode_function *function_of(const char *name)
{
	if (strcmp(name, "coop") == 0)
		return coop_base64_encode;
	if (strcmp(name, "plain") == 0)
		return encode_plain;
	if (strcmp(name, "floor") != 0)
		bench_fail("no such way", name);
	if (!floor_usable())
		bench_fail("this processor has no AVX2", NULL);
	return encode_floor;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		bench_fail("usage: base64_frame floor|coop|plain SIZE TOTAL", NULL);
	encode_function *encode = function_of(argv[1]);
	size_t size = bench_number(argv[2]) / 3 * 3, total = bench_number(argv[3]), sum = 0;
	uint8_t *data = malloc(size + ROOM);
	char *text = malloc(coop_base64_length(size) + ROOM),
	     *expected = malloc(coop_base64_length(size) + ROOM);
	if (size == 0 || !data || !text || !expected)
		bench_fail("no room for that", argv[2]);
	for (size_t i = 0; i < size + ROOM; i++)
		data[i] = (uint8_t)(i * 167 + i / 251);
	size_t length = frame(encode_plain, data, size, 7, expected);
	if (frame(encode, data, size, 7, text) != length || memcmp(text, expected, length) != 0)
		bench_fail("the frame is not what it should be", argv[1]);

	uint64_t began = bench_now();
	for (size_t done = 0; done < total; done += size) {
		sum += frame(encode, data, size, done, text);
		/* The text is used: it cannot be left out. */
		__asm__ volatile("" : : "r"(text) : "memory");
	}
	printf("%" PRIu64 "\n", bench_now() - began);
	free(data);
	free(text);
	free(expected);
	return sum ? 0 : 1;
}
