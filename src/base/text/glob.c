#include "base/text/glob.h"

#include <string.h>

bool coop_glob_special(const char *text)
{
	return strpbrk(text, "*?[") != NULL;
}

/* One character or range after `[`; moves on. */
static bool range_takes(const char **pattern, unsigned char c)
{
	const char *p = *pattern;

	if (*p == '\\' && p[1])
		p++;
	unsigned char low = (unsigned char)*p++, high = low;
	if (*p == '-' && p[1] && p[1] != ']') {
		p++;
		if (*p == '\\' && p[1])
			p++;
		high = (unsigned char)*p++;
	}
	*pattern = p;
	return c >= low && c <= high;
}

/* `pattern` stands after `[`. The place after `]`, or NULL where there is none: then `[` is an
 * ordinary character. */
static const char *match_set(const char *pattern, unsigned char c, bool *ret_taken)
{
	bool negated = *pattern == '!' || *pattern == '^', taken = false;

	pattern += negated;
	for (bool first = true; first || *pattern != ']'; first = false) {
		if (!*pattern)
			return NULL;
		taken |= range_takes(&pattern, c);
	}
	*ret_taken = taken != negated;
	return pattern + 1;
}

/* Whether the pattern's first element, which is no *, takes the character; the place after it. */
static const char *match_one(const char *pattern, unsigned char c)
{
	bool taken = false;

	if (*pattern == '?')
		return pattern + 1;
	if (*pattern == '[') {
		const char *after = match_set(pattern + 1, c, &taken);
		if (after)
			return taken ? after : NULL;
	} else if (*pattern == '\\' && pattern[1]) {
		pattern++;
	}
	return *pattern && (unsigned char)*pattern == c ? pattern + 1 : NULL;
}

/* Only the last * is ever widened: an earlier one that took less cannot make a later one fail. So
 * there is no backtracking over several of them, which would be exponential. */
bool coop_glob_match(const char *pattern, const char *text, size_t *budget)
{
	const char *star = NULL, *star_text = NULL;

	while (*text) {
		if (budget && (*budget)-- == 0) {
			*budget = 0;
			return true;
		}
		if (*pattern == '*') {
			star = ++pattern;
			star_text = text;
			continue;
		}
		const char *next = match_one(pattern, (unsigned char)*text);
		if (next) {
			pattern = next;
			text++;
		} else if (star) {
			pattern = star;
			text = ++star_text;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return !*pattern;
}
