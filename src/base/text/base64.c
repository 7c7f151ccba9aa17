#include "base/text/base64.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/text/base64_encoders.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t coop_base64_length(size_t size)
{
	return (size / 3 + (size % 3 != 0)) * 4;
}

static size_t encode_plain(const uint8_t *data, size_t size, char *text)
{
	const uint8_t *in = data;

	for (; size >= 3; size -= 3, in += 3, text += 4) {
		uint32_t group = (uint32_t)in[0] << 16 | (uint32_t)in[1] << 8 | in[2];
		text[0] = alphabet[group >> 18];
		text[1] = alphabet[group >> 12 & 63];
		text[2] = alphabet[group >> 6 & 63];
		text[3] = alphabet[group & 63];
	}
	return (size_t)(in - data);
}

/* The last group, of one or two bytes. */
static void encode_rest(const uint8_t *in, size_t size, char *text)
{
	uint32_t group = (uint32_t)in[0] << 16 | (size == 2 ? (uint32_t)in[1] << 8 : 0);

	text[0] = alphabet[group >> 18];
	text[1] = alphabet[group >> 12 & 63];
	text[2] = size == 2 ? alphabet[group >> 6 & 63] : '=';
	text[3] = '=';
}

static bool always(void)
{
	return true;
}

#ifdef __x86_64__
static bool has_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}

static bool has_ssse3(void)
{
	return __builtin_cpu_supports("ssse3");
}
#endif

const struct coop_base64_encoder coop_base64_encoders[] = {
#ifdef __x86_64__
	{"avx2", has_avx2, coop_base64_encode_avx2, 16},
	{"ssse3", has_ssse3, coop_base64_encode_ssse3, 16},
#elif defined(__aarch64__) && defined(__ARM_NEON)
	{"neon", always, coop_base64_encode_neon, 48},
#endif
	{"plain", always, encode_plain, 3},
	{0},
};

void coop_base64_encode_with(const struct coop_base64_encoder *encoder, const void *data,
			     size_t size, char *text)
{
	const uint8_t *in = data;
	size_t done = size >= encoder->least ? encoder->encode(in, size, text) : 0;

	done += encode_plain(in + done, size - done, text + done / 3 * 4);
	if (done < size)
		encode_rest(in + done, size - done, text + done / 3 * 4);
}

void coop_base64_encode(const void *data, size_t size, char *text)
{
	const struct coop_base64_encoder *encoder = coop_base64_encoders;

	if (size == 0)
		return;
	while (!encoder->usable())
		encoder++;
	coop_base64_encode_with(encoder, data, size, text);
}

size_t coop_base64_room(size_t length)
{
	return length / 4 * 3;
}

/* What the characters from + to z stand for; -1: they are none of the alphabet. */
static const int8_t values[] = {
	62, -1, -1, -1, 63, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, -1, -1, -1, -1, -1,
	-1, -1, 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17,
	18, 19, 20, 21, 22, 23, 24, 25, -1, -1, -1, -1, -1, -1, 26, 27, 28, 29, 30, 31,
	32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51,
};

/* The six bits that a character stands for, or -1. */
static inline int32_t value_of(char c)
{
	unsigned at = (unsigned)(unsigned char)c - '+';

	return at < sizeof values ? values[at] : -1;
}

/* The last four characters, of which `padding` are = signs. False: they are no group. */
static bool decode_last(const char *text, unsigned padding, unsigned char *out)
{
	uint32_t group = 0;

	for (unsigned i = 0; i < 4; i++) {
		int32_t value = i < 4 - padding ? value_of(text[i]) : 0;
		if (value < 0)
			return false;
		group = group << 6 | (uint32_t)value;
	}
	/* Bits that no byte holds are zero. */
	if (padding && (group & ((1u << 8 * padding) - 1)))
		return false;
	for (unsigned i = 0; i < 3 - padding; i++)
		out[i] = (unsigned char)(group >> (16 - 8 * i));
	return true;
}

int coop_base64_decode(const char *text, size_t length, void *data, size_t *ret_size)
{
	unsigned char *out = data;

	if (length % 4)
		return -EINVAL;
	for (; length > 4; length -= 4, text += 4, out += 3) {
		int32_t a = value_of(text[0]), b = value_of(text[1]), c = value_of(text[2]),
			d = value_of(text[3]);
		if ((a | b | c | d) < 0)
			return -EINVAL;
		out[0] = (unsigned char)(a << 2 | b >> 4);
		out[1] = (unsigned char)(b << 4 | c >> 2);
		out[2] = (unsigned char)(c << 6 | d);
	}
	if (length) {
		unsigned padding = text[3] != '=' ? 0 : text[2] != '=' ? 1 : 2;
		if (!decode_last(text, padding, out))
			return -EINVAL;
		out += 3 - padding;
	}
	*ret_size = (size_t)(out - (unsigned char *)data);
	return 0;
}
