#include "client/views/line.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void coop_line_clear(struct coop_line *line)
{
	free(line->cells);
	*line = (struct coop_line){0};
}

static int make_room(struct coop_line *line, size_t count)
{
	size_t capacity = line->capacity ? line->capacity : 128;

	while (capacity < count)
		capacity *= 2;
	if (capacity == line->capacity)
		return 0;
	struct coop_glyph *grown = coop_mem_realloc(line->cells, capacity * sizeof *grown);
	if (!grown)
		return -ENOMEM;
	line->cells = grown;
	line->capacity = capacity;
	return 0;
}

static void changed(struct coop_line *line, size_t at)
{
	if (at < line->lowest)
		line->lowest = at;
}

static void set(struct coop_line *line, size_t at, const struct coop_glyph *cell)
{
	struct coop_glyph *place = &line->cells[at];

	line->bytes += cell->size;
	if (at < line->count)
		line->bytes -= place->size;
	else
		line->count = at + 1;
	*place = *cell;
	changed(line, at);
}

static void blank(struct coop_line *line, size_t at, uint64_t offset, bool erased)
{
	struct coop_glyph space = {
		.offset = offset, .bytes = " ", .size = 1, .flat = true, .erased = erased};

	set(line, at, &space);
}

int coop_line_put(struct coop_line *line, const struct coop_glyph *cell)
{
	if (line->column > line->count + COOP_LINE_GAP_MAX)
		line->column = line->count + COOP_LINE_GAP_MAX;
	if (make_room(line, line->column + 1) < 0)
		return -ENOMEM;
	while (line->count < line->column)
		blank(line, line->count, cell->offset, false);

	struct coop_glyph written = *cell;
	written.erased = line->column < line->count && written.size == 1 && written.bytes[0] == ' ';
	set(line, line->column++, &written);
	return 0;
}

void coop_line_back(struct coop_line *line)
{
	if (line->column)
		line->column--;
}

static void truncate_to(struct coop_line *line, size_t count)
{
	while (line->count > count)
		line->bytes -= line->cells[--line->count].size;
	changed(line, line->count);
}

static void erase(struct coop_line *line, size_t from, size_t to)
{
	for (size_t at = from; at < to && at < line->count; at++)
		blank(line, at, line->cells[at].offset, true);
}

/* CSI K: to the end, from the start, all of it. */
static void erase_line(struct coop_line *line, int which)
{
	if (which <= 0) {
		if (line->column < line->count)
			truncate_to(line, line->column);
	} else if (which == 1) {
		if (line->count <= COOP_LINE_COLUMNS)
			erase(line, 0, line->column + 1);
	} else if (which == 2) {
		truncate_to(line, 0);
	}
}

/* CSI P: what is right of them moves up. */
static void delete_cells(struct coop_line *line, size_t count)
{
	if (line->column >= line->count || line->count > COOP_LINE_COLUMNS)
		return;
	size_t behind = line->count - line->column;
	if (count > behind)
		count = behind;
	for (size_t i = 0; i < count; i++)
		line->bytes -= line->cells[line->column + i].size;
	memmove(line->cells + line->column, line->cells + line->column + count,
		(behind - count) * sizeof *line->cells);
	line->count -= count;
	changed(line, line->column);
}

/* A column far to the right is one at the line's end, as on a terminal; coop_line_put() has the
 * last word. */
static void move_to(struct coop_line *line, size_t column)
{
	size_t rightmost = line->count + COOP_LINE_GAP_MAX;

	line->column = column < rightmost ? column : rightmost;
}

void coop_line_control(struct coop_line *line, char final, int number)
{
	size_t count = number > 0 ? (size_t)number : 1;

	switch (final) {
	case 'C':
		move_to(line, line->column + count);
		break;
	case 'D':
		line->column -= count < line->column ? count : line->column;
		break;
	case 'G':
		move_to(line, count - 1);
		break;
	case 'J':
		if (number <= 0)
			erase_line(line, 0);
		break;
	case 'K':
		erase_line(line, number);
		break;
	case 'P':
		delete_cells(line, count);
		break;
	case 'X':
		if (line->count <= COOP_LINE_COLUMNS)
			erase(line, line->column, line->column + count);
		break;
	default:
		break;
	}
}

static size_t visible(const struct coop_line *line)
{
	size_t count = line->count;

	while (count && line->cells[count - 1].erased)
		count--;
	return count;
}

int coop_line_show(struct coop_line *line, struct coop_placed_text *text)
{
	size_t count = visible(line);

	if (line->lowest < line->shown || count < line->shown) {
		coop_placed_cut(text, coop_placed_size(text) - line->shown_bytes);
		line->shown = line->shown_bytes = 0;
	}
	for (; line->shown < count; line->shown++) {
		const struct coop_glyph *cell = &line->cells[line->shown];
		if (coop_placed_append(text, cell->bytes, cell->size, cell->offset, cell->flat) < 0)
			return -ENOMEM;
		line->shown_bytes += cell->size;
	}
	line->lowest = line->count;
	return 0;
}

void coop_line_end(struct coop_line *line)
{
	line->count = line->column = line->bytes = 0;
	line->lowest = line->shown = line->shown_bytes = 0;
}
