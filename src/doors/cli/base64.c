#include "base64.h"

#include <stdint.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

size_t cli_base64_length(size_t size)
{
	return (size / 3 + (size % 3 != 0)) * 4;
}

void cli_base64_encode(const void *data, size_t size, char *text)
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
