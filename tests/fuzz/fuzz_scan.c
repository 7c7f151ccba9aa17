/* The scanner that finds members in a JSON text without parsing it: it stays inside the text, and
 * wherever the text is JSON it finds what a parser finds. */
#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "client/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

enum { FLAGS = JSON_DECODE_ANY | JSON_ALLOW_NUL };

static void check_member(const json_t *object, const struct coop_scan_member *member)
{
	if (!member->value)
		return;
	json_t *value = json_loadb(member->value, member->size, FLAGS, NULL);
	assert(value && json_equal(value, json_object_get(object, member->name)));
	json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	struct coop_scan_member members[] = {{.name = "id"}, {.name = "result"}, {.name = "error"}};
	const size_t count = sizeof members / sizeof *members;
	char *text = malloc(size ? size : 1);
	assert(text);
	if (size)
		memcpy(text, input, size);

	int r = coop_scan_object(text, size, members, count);
	assert(r == 0 || r == -EPROTO);
	for (size_t i = 0; i < count; i++) {
		const char *value = members[i].value;
		assert(!value ||
		       (value >= text && members[i].size <= (size_t)(text + size - value)));
	}

	/* A name written twice is one that the keeper does not send; a NUL behind a number is no
	 * JSON, but jansson skips it. */
	json_t *object = NULL;
	if (size && !memchr(text, 0, size))
		object = json_loadb(text, size, FLAGS | JSON_REJECT_DUPLICATES, NULL);
	if (json_is_object(object)) {
		assert(r == 0);
		for (size_t i = 0; i < count; i++)
			check_member(object, &members[i]);
	}
	json_decref(object);
	free(text);
	return 0;
}
