#include "base/base64.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t coop_base64_length(size_t size)
{
	return (size / 3 + (size % 3 != 0)) * 4;
}

void coop_base64_encode(const void *data, size_t size, char *text)
{
	const unsigned char *in = data;
	for (; size >= 3; size -= 3, in += 3, text += 4) {
		uint32_t group = (uint32_t)in[0] << 16 | (uint32_t)in[1] << 8 | in[2];
		text[0] = alphabet[group >> 18];
		text[1] = alphabet[group >> 12 & 63];
		text[2] = alphabet[group >> 6 & 63];
		text[3] = alphabet[group & 63];
	}
	if (size == 0)
		return;
	uint32_t group = (uint32_t)in[0] << 16 | (size == 2 ? (uint32_t)in[1] << 8 : 0);
	text[0] = alphabet[group >> 18];
	text[1] = alphabet[group >> 12 & 63];
	text[2] = size == 2 ? alphabet[group >> 6 & 63] : '=';
	text[3] = '=';
}

size_t coop_base64_room(size_t length)
{
	return length / 4 * 3;
}

/* The six bits that a character stands for; -1: it is none of the alphabet. */
static int value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Four characters, of which the last `padding` are = signs. False: they are no group. */
static bool decode_group(const char *text, unsigned padding, unsigned char *out)
{
	uint32_t group = 0;

	for (unsigned i = 0; i < 4; i++) {
		int value = i < 4 - padding ? value_of(text[i]) : 0;
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
		if (!decode_group(text, 0, out))
			return -EINVAL;
	}
	if (length) {
		unsigned padding = text[3] != '=' ? 0 : text[2] != '=' ? 1 : 2;
		if (!decode_group(text, padding, out))
			return -EINVAL;
		out += 3 - padding;
	}
	*ret_size = (size_t)(out - (unsigned char *)data);
	return 0;
}
