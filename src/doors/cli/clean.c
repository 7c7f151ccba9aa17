#include "doors/cli/clean.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"

static const struct {
	uint32_t first, last;
} unsafe[] = {
	{0x00, 0x1f},     {0x7f, 0x9f},     /* control characters */
	{0x200e, 0x200f}, {0x2028, 0x202e}, /* line separators and directions */
	{0x2066, 0x2069},
};

static bool is_unsafe(uint32_t character)
{
	for (size_t i = 0; i < sizeof(unsafe) / sizeof(unsafe[0]); i++)
		if (character >= unsafe[i].first && character <= unsafe[i].last)
			return true;
	return false;
}

/* The well-formed character of this many bytes. */
static uint32_t decode(const uint8_t *bytes, size_t length)
{
	if (length < 2)
		return bytes[0];
	uint32_t value = bytes[0] & (0x7fu >> length);
	for (size_t i = 1; i < length; i++)
		value = value << 6 | (bytes[i] & 0x3fu);
	return value;
}

/* What replaces the character: NULL if nothing does. */
typedef const char *replacement(uint32_t character, bool valid, char room[8]);

/* Copies with replacements; in place if none is longer than what it replaces. */
static void copy(const char *text, char *to, replacement *replace)
{
	const uint8_t *at = (const uint8_t *)text;
	size_t left = strlen(text);
	while (left) {
		char room[8];
		const size_t known = coop_utf8_char(at, left), length = known ? known : 1;
		const char *instead = replace(decode(at, length), known, room);
		const size_t size = instead ? strlen(instead) : length;
		memmove(to, instead ? instead : (const char *)at, size);
		to += size;
		at += length;
		left -= length;
	}
	*to = '\0';
}

static const char *mark(uint32_t character, bool valid, char room[8])
{
	return valid && !is_unsafe(character) ? NULL : "?";
}

/* The text is JSON already, so that the first set of control characters stands in it only as spaces
 * between members. */
static const char *escape(uint32_t character, bool valid, char room[8])
{
	if (!valid || character < 0x7f || !is_unsafe(character))
		return NULL;
	(void)snprintf(room, 8, "\\u%04x", (unsigned)(character & 0xffff));
	return room;
}

void cli_clean(char *text)
{
	copy(text, text, mark);
}

static void clean_string(json_t *value)
{
	/* One with a NUL inside is shown up to that anyway. */
	char *text = strdup(json_string_value(value));
	if (!text)
		return;
	cli_clean(text);
	(void)json_string_set(value, text);
	free(text);
}

void cli_clean_json(json_t *value)
{
	const char *name;
	json_t *item;
	size_t i;
	if (json_is_string(value))
		clean_string(value);
	json_array_foreach(value, i, item) cli_clean_json(item);
	json_object_foreach(value, name, item)
	{
		cli_clean_json(item);
	}
}

char *cli_clean_dump(const json_t *value, size_t flags)
{
	char *text = json_dumps(value, flags);
	size_t found = 0;
	for (const char *at = text; at && *at; at++)
		found += (uint8_t)*at >= 0x7f;
	/* An escape has six characters, and the shortest of what it stands for has one. */
	char *clean = text && found ? malloc(strlen(text) + 5 * found + 1) : NULL;
	if (!clean) {
		if (!found)
			return text;
		free(text);
		return NULL;
	}
	copy(text, clean, escape);
	free(text);
	return clean;
}
