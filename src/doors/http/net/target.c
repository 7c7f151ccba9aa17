#include "doors/http/net/target.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include "base/mem.h"
#include "base/text/utf8.h"

#define WORD_MAX 20 /* digits of the largest number */

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* The next byte of a text, decoded, which *at is moved behind; -EINVAL. */
static int next_byte(const char *text, size_t size, bool plus, size_t *at)
{
	char c = text[(*at)++];

	if (c == '%') {
		int high = size - *at >= 2 ? hex(text[*at]) : -1;
		int low = high >= 0 ? hex(text[*at + 1]) : -1;
		if (high < 0 || low < 0 || high + low == 0)
			return -EINVAL;
		*at += 2;
		return high * 16 + low;
	}
	if (c == '+' && plus)
		return ' ';
	return c ? (unsigned char)c : -EINVAL;
}

/* Decodes into `ret`, which has room for `size` bytes and a NUL. The length, or -EINVAL. */
static ssize_t decode(const char *text, size_t size, bool plus, char *ret)
{
	size_t n = 0;

	for (size_t at = 0; at < size;) {
		int byte = next_byte(text, size, plus, &at);
		if (byte < 0)
			return byte;
		ret[n++] = (char)byte;
	}
	ret[n] = 0;
	return (ssize_t)n;
}

static bool is_utf8(const char *text, size_t size)
{
	while (size) {
		size_t length = coop_utf8_char((const uint8_t *)text, size);
		if (!length)
			return false;
		text += length;
		size -= length;
	}
	return true;
}

char *coop_target_decode(const char *text, size_t size, bool plus, int *ret_status)
{
	char *ret = coop_mem_alloc(size + 1);

	*ret_status = -ENOMEM;
	if (!ret)
		return NULL;
	ssize_t n = decode(text, size, plus, ret);
	if (n < 0 || !is_utf8(ret, (size_t)n)) {
		free(ret);
		*ret_status = -EINVAL;
		return NULL;
	}
	*ret_status = 0;
	return ret;
}

/* Compares as it decodes: whatever needed memory could take a parameter for one that is absent. */
static bool is_name(const char *text, size_t size, const char *name)
{
	for (size_t at = 0; at < size; name++) {
		int byte = next_byte(text, size, true, &at);
		if (byte < 0 || !*name || byte != (unsigned char)*name)
			return false;
	}
	return !*name;
}

/* Finds a parameter by its raw or encoded name; *ret_size is that of the value. */
static const char *find(const char *query, const char *name, size_t *ret_size)
{
	while (*query) {
		size_t part = strcspn(query, "&");
		size_t key = strcspn(query, "=&");
		if (is_name(query, key, name)) {
			*ret_size = key < part ? part - key - 1 : 0;
			return query + (key < part ? key + 1 : key);
		}
		query += part;
		query += *query == '&';
	}
	return NULL;
}

char *coop_query_get(const char *query, const char *name, int *ret_status)
{
	size_t size;
	const char *value = find(query, name, &size);

	*ret_status = 0;
	return value ? coop_target_decode(value, size, true, ret_status) : NULL;
}

int coop_query_next(const char **query, char **ret_name, char **ret_value)
{
	const char *part = *query + strspn(*query, "&");
	size_t size = strcspn(part, "&"), key = strcspn(part, "=&");
	int status;

	if (!*part)
		return 0;
	*query = part + size;
	char *name = coop_target_decode(part, key, true, &status);
	if (!name)
		return status;
	size_t skipped = key < size ? key + 1 : key;
	char *value = coop_target_decode(part + skipped, size - skipped, true, &status);
	if (!value) {
		free(name);
		return status;
	}
	*ret_name = name;
	*ret_value = value;
	return 1;
}

/* A value that is a short word, decoded without memory. 1, 0 if it is not there, -EINVAL if it is
 * none. */
static int find_word(const char *query, const char *name, char ret[WORD_MAX + 1])
{
	size_t size, n = 0;
	const char *value = find(query, name, &size);

	if (!value)
		return 0;
	for (size_t at = 0; at < size;) {
		int byte = next_byte(value, size, true, &at);
		if (byte < 0 || n == WORD_MAX)
			return -EINVAL;
		ret[n++] = (char)byte;
	}
	ret[n] = 0;
	return 1;
}

int coop_query_uint(const char *query, const char *name, uint64_t max, uint64_t *ret)
{
	char word[WORD_MAX + 1];
	uint64_t number = 0;
	int r = find_word(query, name, word);

	if (r <= 0)
		return r;
	for (const char *at = word; *at; at++) {
		if (*at < '0' || *at > '9')
			return -EINVAL;
		uint64_t digit = (uint64_t)(*at - '0');
		if (digit > max || number > (max - digit) / 10)
			return -EINVAL;
		number = number * 10 + digit;
	}
	if (!*word)
		return -EINVAL;
	*ret = number;
	return 1;
}

int coop_query_bool(const char *query, const char *name, bool *ret)
{
	char word[WORD_MAX + 1];
	int r = find_word(query, name, word);

	if (r <= 0)
		return r;
	if (strcmp(word, "true") != 0 && strcmp(word, "false") != 0)
		return -EINVAL;
	*ret = *word == 't';
	return 1;
}
