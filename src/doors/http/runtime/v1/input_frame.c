#include "doors/http/runtime/v1/input_frame.h"

#include <string.h>

struct scan {
	const char *at, *end;
};

struct string {
	const char *text;
	size_t size;
};

static void skip_space(struct scan *scan)
{
	while (scan->at < scan->end &&
	       (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\n' || *scan->at == '\r'))
		scan->at++;
}

static bool take(struct scan *scan, char c)
{
	skip_space(scan);
	if (scan->at == scan->end || *scan->at != c)
		return false;
	scan->at++;
	return true;
}

/* A string without escapes. Control characters in it are left to whoever reads it: base64 knows
 * none. */
static bool take_string(struct scan *scan, struct string *ret)
{
	if (!take(scan, '"'))
		return false;
	size_t left = (size_t)(scan->end - scan->at);
	const char *close = memchr(scan->at, '"', left);
	if (!close || memchr(scan->at, '\\', (size_t)(close - scan->at)))
		return false;
	*ret = (struct string){scan->at, (size_t)(close - scan->at)};
	scan->at = close + 1;
	return true;
}

/* A number or a word, which nobody asks for. */
static bool take_plain(struct scan *scan)
{
	const char *begin = scan->at;

	while (scan->at < scan->end && (*scan->at == '-' || *scan->at == '+' || *scan->at == '.' ||
					(*scan->at >= '0' && *scan->at <= '9') ||
					(*scan->at >= 'a' && *scan->at <= 'z') || *scan->at == 'E'))
		scan->at++;
	return scan->at > begin;
}

static bool is(const struct string *string, const char *word)
{
	return string->size == strlen(word) && memcmp(string->text, word, string->size) == 0;
}

bool coop_frame_stdin(const char *text, size_t size, const char **ret_data, size_t *ret_size)
{
	struct scan scan = {text, text + size};
	struct string name, value, type = {0}, data = {0};

	if (!take(&scan, '{'))
		return false;
	do {
		if (!take_string(&scan, &name) || !take(&scan, ':'))
			return false;
		skip_space(&scan);
		bool string = scan.at < scan.end && *scan.at == '"';
		if (!(string ? take_string(&scan, &value) : take_plain(&scan)))
			return false;
		if (!string)
			value = (struct string){0};
		if (is(&name, "type"))
			type = value;
		else if (is(&name, "data"))
			data = value;
	} while (take(&scan, ','));
	if (!take(&scan, '}'))
		return false;
	skip_space(&scan);
	if (scan.at != scan.end || !type.text || !is(&type, "stdin") || !data.text)
		return false;
	*ret_data = data.text;
	*ret_size = data.size;
	return true;
}
