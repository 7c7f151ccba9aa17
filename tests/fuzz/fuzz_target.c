/* What a request's target says: every decoded text is what a plain decoder makes of it, every
 * refusal has its reason, and a parameter is found exactly where a plain search finds it. Input: a
 * name of a parameter, a NUL, a target's text. */
#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"
#include "doors/http/net/target.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

/* The same by other means: NULL where it can not be decoded. */
static char *plain_decode(const char *text, size_t size, bool plus)
{
	char *ret = malloc(size + 1);
	size_t n = 0;

	assert(ret);
	for (size_t i = 0; i < size; i++) {
		unsigned value = (uint8_t)text[i];
		if (value == '%') {
			char digits[3] = {0};
			if (size - i < 3 || !isxdigit((uint8_t)text[i + 1]) ||
			    !isxdigit((uint8_t)text[i + 2])) {
				free(ret);
				return NULL;
			}
			memcpy(digits, text + i + 1, 2);
			value = (unsigned)strtoul(digits, NULL, 16);
			i += 2;
		} else if (value == '+' && plus) {
			value = ' ';
		}
		ret[n++] = (char)value;
	}
	ret[n] = 0;
	bool good = memchr(ret, 0, n) == NULL;
	for (size_t i = 0, length; good && i < n; i += length) {
		length = coop_utf8_char((const uint8_t *)ret + i, n - i);
		good = length > 0;
	}
	if (good)
		return ret;
	free(ret);
	return NULL;
}

/* A copy of exactly the size, so that the sanitizer sees a read past it. */
static char *copy(const char *text, size_t size)
{
	char *ret = malloc(size ? size : 1);

	assert(ret);
	memcpy(ret, text, size);
	return ret;
}

static void check_decode(const char *text, size_t size, bool plus)
{
	int status = 1;
	char *own = copy(text, size);
	char *found = coop_target_decode(own, size, plus, &status);
	char *expected = plain_decode(own, size, plus);

	assert((found != NULL) == (expected != NULL));
	assert(found ? status == 0 && strcmp(found, expected) == 0 : status == -EINVAL);
	free(found);
	free(expected);
	free(own);
}

/* The first part of a query whose decoded key is the name; its value's raw text, for the caller to
 * free. */
static char *plain_find(const char *query, const char *name)
{
	char *parts = strdup(query), *ret = NULL;
	char *rest = parts;

	assert(parts);
	for (char *part; !ret && (part = strsep(&rest, "&"));) {
		char *equals = strchr(part, '=');
		size_t key_size = equals ? (size_t)(equals - part) : strlen(part);
		char *key = plain_decode(part, key_size, true);
		if (key && strcmp(key, name) == 0)
			ret = strdup(equals ? equals + 1 : "");
		free(key);
	}
	free(parts);
	return ret;
}

static void check_uint(const char *query, const char *name, const char *raw, uint64_t max)
{
	uint64_t number = 77;
	int r = coop_query_uint(query, name, max, &number);
	size_t digits = raw ? strspn(raw, "0123456789") : 0;

	if (!raw) {
		assert(r == 0 && number == 77);
		return;
	}
	/* An overflow of 64 bits is seen as one. */
	unsigned __int128 value = 0;
	for (size_t i = 0; i < digits && i < 30; i++)
		value = value * 10 + (unsigned)(raw[i] - '0');
	if (r == 1) {
		assert(digits > 0 && !raw[digits] && value == number && number <= max);
	} else {
		assert(r == -EINVAL && number == 77);
		assert(digits == 0 || raw[digits] || digits > 20 || value > max);
	}
}

static void check_query(const char *query, const char *name)
{
	char *raw = plain_find(query, name);
	char *expected = raw ? plain_decode(raw, strlen(raw), true) : NULL;
	int status = 1;
	char *found = coop_query_get(query, name, &status);
	bool yes = true;

	if (!raw)
		assert(!found && status == 0);
	else if (!expected)
		assert(!found && status == -EINVAL);
	else
		assert(found && status == 0 && strcmp(found, expected) == 0);
	/* What cannot be decoded is no number, either. */
	const char *word = raw && !expected ? "%" : expected;
	check_uint(query, name, word, 9);
	check_uint(query, name, word, 1 << 20);
	check_uint(query, name, word, UINT64_MAX);
	int r = coop_query_bool(query, name, &yes);
	if (!raw)
		assert(r == 0 && yes);
	else if (expected && (strcmp(expected, "true") == 0 || strcmp(expected, "false") == 0))
		assert(r == 1 && yes == (expected[0] == 't'));
	else
		assert(r == -EINVAL && yes);
	free(raw);
	free(expected);
	free(found);
}

/* Goes through a query: each step takes a part, and what it gives is what a plain decoder makes of
 * it. */
static void check_next(const char *query)
{
	const char *at = query;
	char *name = NULL, *value = NULL;
	int r;

	do {
		const char *part = at + strspn(at, "&");
		size_t size = strcspn(part, "&"), key = strcspn(part, "=&");
		r = coop_query_next(&at, &name, &value);
		if (!size) {
			assert(r == 0);
			return;
		}
		assert(at == part + size);
		char *plain_name = plain_decode(part, key, true);
		char *plain_value = key < size ? plain_decode(part + key + 1, size - key - 1, true)
					       : strdup("");
		if (r > 0) {
			assert(plain_name && plain_value && !strcmp(name, plain_name) &&
			       !strcmp(value, plain_value));
			free(name);
			free(value);
		} else {
			assert(r == -EINVAL && (!plain_name || !plain_value));
		}
		free(plain_name);
		free(plain_value);
	} while (r != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	const uint8_t *end = memchr(input, 0, size);
	char *name, *query;

	if (!end)
		return 0;
	size_t rest = size - (size_t)(end - input) - 1;
	check_decode((const char *)end + 1, rest, false);
	check_decode((const char *)end + 1, rest, true);
	/* A query has no NUL: heads with one are refused. */
	query = strndup((const char *)end + 1, rest);
	name = strdup((const char *)input);
	assert(name && query);
	/* Names are ours: text. */
	char *text = plain_decode(name, strlen(name), false);
	if (*name && text)
		check_query(query, name);
	free(text);
	check_query(query, "since");
	check_next(query);
	free(name);
	free(query);
	return 0;
}
