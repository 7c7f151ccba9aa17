#include "base/json/jsonw.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/text/utf8.h"

#define LONG_TEXT 4096u

/* Records are long, and made of many small pieces: the usual case, that there is room, must cost
 * next to nothing. */
static void put(struct coop_jsonw *w, const void *bytes, size_t size)
{
	struct coop_buf *out = w->out;

	if (out->data && out->capacity - out->tail >= size) {
		memcpy(out->data + out->tail, bytes, size);
		out->tail += size;
	} else if (!w->failed && coop_buf_append(out, bytes, size) < 0) {
		w->failed = true;
	}
}

static void put_text(struct coop_jsonw *w, const char *text)
{
	put(w, text, strlen(text));
}

static void put_escaped(struct coop_jsonw *w, uint8_t byte)
{
	static const char *const shorts[] = {
		['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n", ['\f'] = "\\f", ['\r'] = "\\r",
	};
	char code[8];

	if (byte == '"' || byte == '\\') {
		put(w, byte == '"' ? "\\\"" : "\\\\", 2);
	} else if (byte < sizeof shorts / sizeof shorts[0] && shorts[byte]) {
		put_text(w, shorts[byte]);
	} else {
		(void)snprintf(code, sizeof code, "\\u%04x", byte);
		put_text(w, code);
	}
}

static bool is_plain(uint8_t byte)
{
	return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

#define EACH_BYTE UINT64_C(0x0101010101010101)
#define HIGH_BITS (EACH_BYTE << 7)

/* Not 0 if a byte of them is 0, and else 0. */
static uint64_t has_zero(uint64_t eight)
{
	return (eight - EACH_BYTE) & ~eight & HIGH_BITS;
}

/* Whether eight bytes are all plain. */
static bool are_plain(const uint8_t *bytes)
{
	uint64_t eight;

	memcpy(&eight, bytes, sizeof eight);
	return !((eight & HIGH_BITS) | has_zero(eight & (EACH_BYTE * 0xe0)) |
		 has_zero(eight ^ (EACH_BYTE * 0x7f)) | has_zero(eight ^ (EACH_BYTE * '"')) |
		 has_zero(eight ^ (EACH_BYTE * '\\')));
}

static size_t plain_run(const uint8_t *bytes, size_t size)
{
	size_t run = 0;

	while (size - run >= sizeof(uint64_t) && are_plain(bytes + run))
		run += sizeof(uint64_t);
	while (run < size && is_plain(bytes[run]))
		run++;
	return run;
}

/* Whether all of a short text is plain: the last eight bytes at once, some of them for the
 * second time. */
static bool is_all_plain(const uint8_t *bytes, size_t size)
{
	if (size < sizeof(uint64_t))
		return plain_run(bytes, size) == size;
	size_t last = size - sizeof(uint64_t), run = 0;
	while (run < last && are_plain(bytes + run))
		run += sizeof(uint64_t);
	return run >= last && are_plain(bytes + last);
}

static void put_quoted(struct coop_jsonw *w, const char *text, size_t left)
{
	const uint8_t *p = (const uint8_t *)text;

	/* Long text mostly has some line ends to be quoted and little else: its memory is found at
	 * once. Without it each piece asks for its own. */
	if (left > LONG_TEXT)
		(void)coop_buf_reserve(w->out, left + left / 16 + 2);
	put(w, "\"", 1);
	while (left) {
		size_t run = plain_run(p, left);
		if (run) {
			put(w, p, run);
		} else if (*p < 0x80) {
			put_escaped(w, *p);
			run = 1;
		} else {
			run = coop_utf8_char(p, left);
			if (run)
				put(w, p, run);
			else
				put_text(w, "\xef\xbf\xbd");
			run += !run;
		}
		p += run;
		left -= run;
	}
	put(w, "\"", 1);
}

/* A member's name that needs no escape, as ours do: the usual case is one copy. */
static char *put_plain_name(char *at, const char *name, size_t size)
{
	*at++ = '"';
	at = mempcpy(at, name, size);
	*at++ = '"';
	return at;
}

static void open_member(struct coop_jsonw *w, const char *name)
{
	size_t size = name ? strlen(name) : 0;
	char *at = (char *)coop_buf_reserve(w->out, size + 4);

	w->failed = w->failed || !at;
	if (w->failed)
		return;
	char *begin = at;
	bool plain = !name || is_all_plain((const uint8_t *)name, size);
	if (w->comma)
		*at++ = ',';
	w->comma = true;
	if (name && plain) {
		at = put_plain_name(at, name, size);
		*at++ = ':';
	}
	coop_buf_commit(w->out, (size_t)(at - begin));
	/* Names of maps come from outside: a quote in one must not end it. */
	if (!plain) {
		put_quoted(w, name, size);
		put(w, ":", 1);
	}
}

void coop_jsonw_begin(struct coop_jsonw *w, const char *name)
{
	open_member(w, name);
	put(w, "{", 1);
	w->comma = false;
}

void coop_jsonw_end(struct coop_jsonw *w)
{
	put(w, "}", 1);
	w->comma = true;
}

void coop_jsonw_array(struct coop_jsonw *w, const char *name)
{
	open_member(w, name);
	put(w, "[", 1);
	w->comma = false;
}

void coop_jsonw_array_end(struct coop_jsonw *w)
{
	put(w, "]", 1);
	w->comma = true;
}

void coop_jsonw_string(struct coop_jsonw *w, const char *name, const char *text)
{
	open_member(w, name);
	if (text)
		put_quoted(w, text, strlen(text));
	else
		put_text(w, "null");
}

static void put_digits(struct coop_jsonw *w, uint64_t value, bool negative)
{
	char digits[24];
	size_t at = sizeof digits;

	do
		digits[--at] = (char)('0' + value % 10);
	while (value /= 10);
	if (negative)
		digits[--at] = '-';
	put(w, digits + at, sizeof digits - at);
}

void coop_jsonw_int(struct coop_jsonw *w, const char *name, int64_t value)
{
	open_member(w, name);
	put_digits(w, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, value < 0);
}

void coop_jsonw_uint(struct coop_jsonw *w, const char *name, uint64_t value)
{
	open_member(w, name);
	put_digits(w, value, false);
}

void coop_jsonw_bool(struct coop_jsonw *w, const char *name, bool value)
{
	open_member(w, name);
	put_text(w, value ? "true" : "false");
}

void coop_jsonw_null(struct coop_jsonw *w, const char *name)
{
	open_member(w, name);
	put_text(w, "null");
}

void coop_jsonw_fixed(struct coop_jsonw *w, const char *name, double value)
{
	char digits[32];

	open_member(w, name);
	(void)snprintf(digits, sizeof digits, "%.1f", value);
	put_text(w, digits);
}

void coop_jsonw_raw(struct coop_jsonw *w, const char *name, const char *json)
{
	open_member(w, name);
	put_text(w, json);
}

void coop_jsonw_text(struct coop_jsonw *w, const char *name, const char *text, size_t size)
{
	open_member(w, name);
	put_quoted(w, text, size);
}

static void put_value(struct coop_jsonw *w, const json_t *value);

static void put_object(struct coop_jsonw *w, const json_t *object)
{
	const char *key;
	json_t *value;
	bool first = true;

	put(w, "{", 1);
	/* jansson's iteration takes no const; nothing is changed. */
	json_object_foreach((json_t *)(uintptr_t)object, key, value)
	{
		if (!first)
			put(w, ",", 1);
		first = false;
		put_quoted(w, key, strlen(key));
		put(w, ":", 1);
		put_value(w, value);
	}
	put(w, "}", 1);
}

static void put_real(struct coop_jsonw *w, const json_t *value)
{
	char text[40];

	/* As many digits as everybody's numbers have: 26.2 stays 26.2. */
	(void)snprintf(text, sizeof text, "%.15g", json_real_value(value));
	put_text(w, text);
}

static void put_value(struct coop_jsonw *w, const json_t *value)
{
	char digits[32];
	size_t index;
	const json_t *item;

	switch (json_typeof(value)) {
	case JSON_OBJECT:
		put_object(w, value);
		break;
	case JSON_ARRAY:
		put(w, "[", 1);
		json_array_foreach(value, index, item)
		{
			if (index)
				put(w, ",", 1);
			put_value(w, item);
		}
		put(w, "]", 1);
		break;
	case JSON_STRING:
		put_quoted(w, json_string_value(value), json_string_length(value));
		break;
	case JSON_INTEGER:
		(void)snprintf(digits, sizeof digits, "%lld", (long long)json_integer_value(value));
		put_text(w, digits);
		break;
	case JSON_REAL:
		put_real(w, value);
		break;
	case JSON_TRUE:
	case JSON_FALSE:
		put_text(w, json_is_true(value) ? "true" : "false");
		break;
	case JSON_NULL:
		put_text(w, "null");
		break;
	}
}

void coop_jsonw_value(struct coop_jsonw *w, const char *name, const json_t *value)
{
	open_member(w, name);
	put_value(w, value);
}

void coop_jsonw_time(struct coop_jsonw *w, const char *name, int64_t wall_ms)
{
	char text[COOP_CLOCK_TEXT];

	if (!wall_ms) {
		coop_jsonw_null(w, name);
		return;
	}
	coop_clock_format(wall_ms, text);
	coop_jsonw_string(w, name, text);
}
