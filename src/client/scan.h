/* Finds members of a JSON object in its text, so that a result can be handed on as it came: a
 * record is parsed once, by the one who looks into it. Checks nesting only, not the grammar of
 * what it skips. */
#ifndef COOP_CLIENT_SCAN_H
#define COOP_CLIENT_SCAN_H

#include <stddef.h>

struct coop_scan_member {
	const char *name;
	char *value; /* points into the text; NULL if the object has no such member */
	size_t size;
};

/* Fills value and size of each of the `count` members. 0, or -EPROTO if the text is no object. */
int coop_scan_object(char *text, size_t size, struct coop_scan_member *members, size_t count);

#endif
