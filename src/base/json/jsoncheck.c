#include "base/json/jsoncheck.h"

#include <stdint.h>
#include <string.h>

#include "base/text/utf8.h"

#define DEPTH_MAX 2048 /* of values in each other, as jansson */

/* Each function takes where to look and where the text ends, and returns where it stopped, or NULL
 * where the text is not what it looks for. */

static const char *skip_space(const char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
		at++;
	return at;
}

static const char *skip_digits(const char *at, const char *end)
{
	const char *start = at;

	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return at > start ? at : NULL;
}

static const char *skip_number(const char *at, const char *end)
{
	at += at < end && *at == '-';
	at = at < end && *at == '0' ? at + 1 : skip_digits(at, end);
	if (at && at < end && *at == '.')
		at = skip_digits(at + 1, end);
	if (!at || at == end || (*at | 0x20) != 'e')
		return at;
	at++;
	return skip_digits(at + (at < end && (*at == '+' || *at == '-')), end);
}

/* The number that four digits behind a \u make; -1: they are none. */
static int code_unit(const char *at, const char *end)
{
	int value = 0;

	for (int i = 0; i < 4; i++) {
		char c = at + i < end ? at[i] : 0, letter = (char)(c | 0x20);
		if (c >= '0' && c <= '9')
			value = value * 16 + c - '0';
		else if (letter >= 'a' && letter <= 'f')
			value = value * 16 + letter - 'a' + 10;
		else
			return -1;
	}
	return value;
}

/* `at` is behind a backslash. Of a pair of surrogates both must be there. */
static const char *skip_escape(const char *at, const char *end)
{
	if (at == end || *at != 'u')
		return at < end && memchr("\"\\/bfnrt", *at, 8) ? at + 1 : NULL;
	int unit = code_unit(at + 1, end);
	if (unit < 0 || (unit >= 0xdc00 && unit <= 0xdfff))
		return NULL;
	at += 5;
	if (unit < 0xd800 || unit > 0xdfff)
		return at;
	int other = end - at > 1 && at[0] == '\\' && at[1] == 'u' ? code_unit(at + 2, end) : -1;
	return other >= 0xdc00 && other <= 0xdfff ? at + 6 : NULL;
}

static const char *skip_word(const char *at, const char *end, const char *word)
{
	size_t size = strlen(word);

	return (size_t)(end - at) >= size && memcmp(at, word, size) == 0 ? at + size : NULL;
}

static const char *skip_string(const char *at, const char *end, bool key)
{
	if (at == end || *at != '"')
		return NULL;
	for (at++; at && at < end && *at != '"';) {
		unsigned char c = (unsigned char)*at;
		size_t length = c < 0x20 ? 0
				: c < 0x80
					? 1
					: coop_utf8_char((const uint8_t *)at, (size_t)(end - at));
		if (!length)
			return NULL;
		/* jansson's keys end with a NUL. */
		if (key && c == '\\' && skip_word(at, end, "\\u0000"))
			return NULL;
		at = c == '\\' ? skip_escape(at + 1, end) : at + length;
	}
	return at && at < end ? at + 1 : NULL;
}

static const char *skip_nested(const char *at, const char *end, unsigned depth);

static const char *skip_value(const char *at, const char *end, unsigned depth)
{
	if (depth > DEPTH_MAX)
		return NULL;
	switch (at < end ? *at : 0) {
	case '{':
	case '[':
		return skip_nested(at, end, depth);
	case '"':
		return skip_string(at, end, false);
	case 't':
		return skip_word(at, end, "true");
	case 'f':
		return skip_word(at, end, "false");
	case 'n':
		return skip_word(at, end, "null");
	default:
		return skip_number(at, end);
	}
}

static const char *skip_nested(const char *at, const char *end, unsigned depth)
{
	const bool object = *at == '{';
	const char close = object ? '}' : ']';

	at = skip_space(at + 1, end);
	if (at < end && *at == close)
		return at + 1;
	for (;;) {
		if (object) {
			at = skip_string(at, end, true);
			at = at ? skip_space(at, end) : NULL;
			if (!at || at == end || *at != ':')
				return NULL;
			at = skip_space(at + 1, end);
		}
		at = skip_value(at, end, depth + 1);
		at = at ? skip_space(at, end) : NULL;
		if (!at || at == end || (*at != ',' && *at != close))
			return NULL;
		if (*at++ == close)
			return at;
		at = skip_space(at, end);
	}
}

bool coop_jsoncheck_object(const char *text, size_t size)
{
	const char *end = text + size, *at = skip_space(text, end);

	at = at < end && *at == '{' ? skip_nested(at, end, 1) : NULL;
	return at && skip_space(at, end) == end;
}
