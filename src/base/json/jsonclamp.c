#include "base/json/jsonclamp.h"

#include <stdbool.h>
#include <string.h>

/* Index behind the string that begins at `at`. */
static size_t skip_string(const char *text, size_t size, size_t at)
{
	for (at++; at < size && text[at] != '"'; at++)
		at += text[at] == '\\';
	return at + 1;
}

static void replace(char *number, size_t size)
{
	bool real = false;

	for (size_t i = 0; i < size; i++)
		real = real || strchr(".eE", number[i]);
	const char *largest = real             ? "1e99"
			      : *number == '-' ? "-9223372036854775808"
					       : "9223372036854775807";
	size_t length = strlen(largest);
	/* What is shorter fits. */
	if (size < length)
		return;
	memcpy(number, largest, length);
	memset(number + length, ' ', size - length);
}

void coop_jsonclamp(char *text, size_t size)
{
	for (size_t at = 0; at < size;) {
		if (text[at] == '"') {
			at = skip_string(text, size, at);
			continue;
		}
		/* A number begins with a digit or a sign: the e of a word such as true is none. */
		size_t end = at + 1;
		if (text[at] && strchr("-0123456789", text[at])) {
			while (end < size && text[end] && strchr("+-.0123456789eE", text[end]))
				end++;
			replace(text + at, end - at);
		}
		at = end;
	}
}
