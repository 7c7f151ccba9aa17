#include "client/scan.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

/* All of these take where to look and where the text ends, and return where they stopped, or
 * NULL if the text ended. */

static char *skip_space(char *at, const char *end)
{
	while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
		at++;
	return at < end ? at : NULL;
}

/* `at` is the opening quote; stops behind the closing one. */
static char *skip_string(char *at, const char *end)
{
	for (at++; at < end; at++) {
		if (*at == '"')
			return at + 1;
		if (*at == '\\' && ++at == end)
			return NULL;
	}
	return NULL;
}

static char *skip_nested(char *at, const char *end)
{
	size_t depth = 0;

	while (at && at < end) {
		if (*at == '"') {
			at = skip_string(at, end);
			continue;
		}
		if (*at == '{' || *at == '[')
			depth++;
		else if ((*at == '}' || *at == ']') && --depth == 0)
			return at + 1;
		at++;
	}
	return NULL;
}

static char *skip_value(char *at, const char *end)
{
	char *start = at;

	if (*at == '"')
		return skip_string(at, end);
	if (*at == '{' || *at == '[')
		return skip_nested(at, end);
	while (at < end && !strchr(",}] \t\r\n", *at))
		at++;
	return at > start && at < end ? at : NULL;
}

static void note(struct coop_scan_member *members, size_t count, const char *name, size_t name_size,
		 char *value, size_t size)
{
	for (size_t i = 0; i < count; i++) {
		if (strlen(members[i].name) == name_size &&
		    memcmp(members[i].name, name, name_size) == 0) {
			members[i].value = value;
			members[i].size = size;
		}
	}
}

/* One `"name": value`; stops behind the value. */
static char *scan_member(char *at, const char *end, struct coop_scan_member *members, size_t count)
{
	if (*at != '"')
		return NULL;
	const char *name = at + 1;
	at = skip_string(at, end);
	if (!at)
		return NULL;
	size_t name_size = (size_t)(at - 1 - name);
	at = skip_space(at, end);
	if (!at || *at != ':')
		return NULL;
	char *value = skip_space(at + 1, end);
	at = value ? skip_value(value, end) : NULL;
	if (at)
		note(members, count, name, name_size, value, (size_t)(at - value));
	return at;
}

int coop_scan_object(char *text, size_t size, struct coop_scan_member *members, size_t count)
{
	const char *end = text + size;
	char *at = skip_space(text, end);

	for (size_t i = 0; i < count; i++) {
		members[i].value = NULL;
		members[i].size = 0;
	}
	if (!at || *at != '{')
		return -EPROTO;
	at = skip_space(at + 1, end);
	if (at && *at == '}')
		return skip_space(at + 1, end) ? -EPROTO : 0;
	while (at) {
		at = scan_member(at, end, members, count);
		at = at ? skip_space(at, end) : NULL;
		if (at && *at == '}')
			return skip_space(at + 1, end) ? -EPROTO : 0;
		if (!at || *at != ',')
			return -EPROTO;
		at = skip_space(at + 1, end);
	}
	return -EPROTO;
}

bool coop_scan_says(const char *object, const char *name, const char *value)
{
	struct coop_scan_member member = {.name = name};
	size_t size = strlen(value);

	/* Nothing is written to the text. */
	return coop_scan_object((char *)(uintptr_t)object, strlen(object), &member, 1) == 0 &&
	       member.size == size + 2 && *member.value == '"' &&
	       memcmp(member.value + 1, value, size) == 0;
}
