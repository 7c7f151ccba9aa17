/* A terminal fed with anything: no harm, lines of valid text that fit, the same however the bytes
 * were cut. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"
#include "client/views/screen.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static void check_text(const char *text)
{
	size_t size = strlen(text);

	for (size_t at = 0; at < size;) {
		size_t length = coop_utf8_char((const uint8_t *)text + at, size - at);
		assert(length > 0);
		at += length;
	}
}

static void compare(const struct coop_screen *one, const struct coop_screen *other, unsigned cols,
		    unsigned rows)
{
	struct coop_screen_cursor cursor = coop_screen_cursor(one);
	struct coop_screen_cursor second = coop_screen_cursor(other);

	assert(cursor.col < cols && cursor.row < rows);
	assert(cursor.col == second.col && cursor.row == second.row);
	assert(cursor.visible == second.visible);
	assert(coop_screen_is_alternate(one) == coop_screen_is_alternate(other));
	assert(!strcmp(coop_screen_title(one), coop_screen_title(other)));
	check_text(coop_screen_title(one));
	for (unsigned row = 0; row <= rows; row++) {
		char *line, *same;
		int r = coop_screen_line(one, row, &line);
		assert(r == 0);
		r = coop_screen_line(other, row, &same);
		assert(r == 0 && !strcmp(line, same));
		check_text(line);
		assert(!*line || line[strlen(line) - 1] != ' ');
		free(line);
		free(same);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	if (size < 3)
		return 0;
	unsigned cols = 2 + input[0] % 40, rows = 1 + input[1] % 12;
	size_t count = size - 3, step = 1 + input[2] % 32;
	struct coop_screen *whole = coop_screen_new(cols, rows);
	struct coop_screen *parts = coop_screen_new(cols, rows);
	uint8_t *bytes = malloc(count + 1);
	assert(whole && parts && bytes);
	memcpy(bytes, input + 3, count);
	coop_screen_feed(whole, bytes, count);
	for (size_t at = 0; at < count; at += step)
		coop_screen_feed(parts, bytes + at, count - at < step ? count - at : step);
	compare(whole, parts, cols, rows);
	coop_screen_free(whole);
	coop_screen_free(parts);
	free(bytes);
	return 0;
}
