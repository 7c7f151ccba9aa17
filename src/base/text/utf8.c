#include "base/text/utf8.h"

/* Length that a first byte announces; 0 if it cannot begin a character. */
static size_t announced(uint8_t first)
{
	if (first < 0x80)
		return 1;
	if (first >= 0xc2 && first <= 0xdf)
		return 2;
	if (first >= 0xe0 && first <= 0xef)
		return 3;
	if (first >= 0xf0 && first <= 0xf4)
		return 4;
	return 0;
}

/* Whether `second` may follow `first`: rules out overlong forms, surrogates and what lies above
 * U+10FFFF. */
static int second_fits(uint8_t first, uint8_t second)
{
	uint8_t low = 0x80, high = 0xbf;

	if (first == 0xe0)
		low = 0xa0;
	else if (first == 0xed)
		high = 0x9f;
	else if (first == 0xf0)
		low = 0x90;
	else if (first == 0xf4)
		high = 0x8f;
	return second >= low && second <= high;
}

/* How many of the bytes fit the character that bytes[0] announces. */
static size_t fitting(const uint8_t *bytes, size_t size, size_t length)
{
	size_t n = 1;

	while (n < length && n < size) {
		int fits = n == 1 ? second_fits(bytes[0], bytes[1]) : (bytes[n] & 0xc0) == 0x80;
		if (!fits)
			break;
		n++;
	}
	return n;
}

size_t coop_utf8_char(const uint8_t *bytes, size_t size)
{
	size_t length = size ? announced(bytes[0]) : 0;

	return length && fitting(bytes, size, length) == length ? length : 0;
}

size_t coop_utf8_unfinished(const uint8_t *bytes, size_t size)
{
	for (size_t back = 1; back <= 3 && back <= size; back++) {
		const uint8_t *start = bytes + size - back;
		size_t length = announced(*start);
		if ((*start & 0xc0) == 0x80)
			continue;
		return length > back && fitting(start, back, length) == back ? back : 0;
	}
	return 0;
}
