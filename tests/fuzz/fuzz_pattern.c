/* Patterns and what they are looked for in, both from outside: no harm, an end soon, and the same
 * match however the bytes were cut. */
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/views/pattern.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static int search(const struct coop_pattern *pattern, const uint8_t *bytes, size_t size,
		  size_t step, struct coop_pattern_match *ret)
{
	struct coop_search *search = coop_search_new(pattern);
	char reason[256];
	int r = 0;

	assert(search);
	ret->found = false;
	for (size_t at = 0; at <= size && r == 0 && !ret->found; at += step) {
		size_t part = size - at < step ? size - at : step;
		r = coop_search_feed(search, bytes + at, part, at + part == size, ret, reason);
		assert(r == 0 || (r == -ERANGE && *reason));
		if (at + part == size)
			break;
		struct coop_pattern_match seen;
		if (r == 0 && !ret->found)
			assert(coop_search_peek(search, &seen, reason) <= 0);
	}
	for (unsigned i = 0; r == 0 && ret->found && i < ret->count; i++) {
		size_t length;
		const char *group = coop_search_group(search, ret, i, &length);
		assert((group == NULL) == (ret->groups[i].start == COOP_NO_GROUP));
		assert(!group || ret->groups[i].end <= size);
		assert(!group || !length || !memcmp(group, bytes + ret->groups[i].start, length));
	}
	coop_search_free(search);
	return r;
}

static void compare(const struct coop_pattern *pattern, const uint8_t *bytes, size_t size,
		    size_t step)
{
	struct coop_pattern_match whole, parts, found;
	char reason[256];
	int r = search(pattern, bytes, size, size + 1, &whole);
	int part_r = search(pattern, bytes, size, step, &parts);

	if (coop_pattern_find(pattern, bytes, size, 0, &found, reason) == 0 && r == 0)
		assert(found.found == whole.found);
	/* Limits may be met the one way and not the other. */
	if (r < 0 || part_r < 0)
		return;
	assert(whole.found == parts.found);
	if (!whole.found)
		return;
	assert(whole.count == parts.count);
	for (unsigned i = 0; i < whole.count; i++) {
		assert(whole.groups[i].start == parts.groups[i].start);
		assert(whole.groups[i].end == parts.groups[i].end);
	}
}

/* The first byte: kind and step. The pattern ends with a byte of value 0. */
int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	const uint8_t *end = size > 1 ? memchr(input + 1, 0, size - 1) : NULL;
	struct coop_pattern *pattern = NULL;
	char reason[256] = "";

	if (!end)
		return 0;
	size_t pattern_size = (size_t)(end - input) - 1;
	size_t count = size - pattern_size - 2;
	int r = coop_pattern_new((const char *)input + 1, pattern_size, input[0] & 1, &pattern,
				 reason);
	assert(r == 0 || (r == -EINVAL && *reason));
	if (r < 0)
		return 0;
	uint8_t *bytes = malloc(count + 1);
	assert(bytes);
	memcpy(bytes, end + 1, count);
	compare(pattern, bytes, count, 1 + input[0] / 16);
	free(bytes);
	coop_pattern_free(pattern);
	return 0;
}
