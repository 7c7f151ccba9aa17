/* Finds members of a JSON object in its text, so that a result can be handed on as it came: a
 * record is parsed once, by the one who looks into it. Checks nesting only, not the grammar of
 * what it skips. */
#ifndef COOP_CLIENT_SCAN_H
#define COOP_CLIENT_SCAN_H

#include <stdbool.h>
#include <stddef.h>

struct coop_scan_member {
	const char *name;
	char *value; /* points into the text; NULL if the object has no such member */
	size_t size;
};

/* Fills value and size of each of the `count` members. 0, or -EPROTO if the text is no object. */
int coop_scan_object(char *text, size_t size, struct coop_scan_member *members, size_t count);

/* Whether the object has a member of that name that is the string `value`, which needs no escapes:
 * for what is often asked of details and events, mostly in vain. */
bool coop_scan_says(const char *object, const char *name, const char *value);

#endif
