#include "base/jsonw.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"

/* Records are long, and made of many small pieces: the usual case, that there is room, must cost next to nothing. */
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
		(void)snprintf(code, sizeof code, "\\%c", byte);
		put_text(w, code);
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

static void put_quoted(struct coop_jsonw *w, const char *text)
{
	const uint8_t *p = (const uint8_t *)text;
	size_t left = strlen(text);

	put(w, "\"", 1);
	while (left) {
		size_t run = 0;
		while (run < left && is_plain(p[run]))
			run++;
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

static void open_member(struct coop_jsonw *w, const char *name)
{
	size_t size = name ? strlen(name) : 0;
	char *at = (char *)coop_buf_reserve(w->out, size + 4);

	w->failed = w->failed || !at;
	if (w->failed)
		return;
	char *begin = at;
	if (w->comma)
		*at++ = ',';
	w->comma = true;
	if (name) {
		/* Names are ours or have been checked: variable names, settings. */
		*at++ = '"';
		at = mempcpy(at, name, size);
		*at++ = '"';
		*at++ = ':';
	}
	coop_buf_commit(w->out, (size_t)(at - begin));
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
		put_quoted(w, text);
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
