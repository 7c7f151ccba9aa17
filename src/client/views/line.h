/* The line that a program is still writing, one cell for each character, so that it may be
 * overwritten. A part of plain.c.
 *
 * A character counts as one column, however wide it is: a program that overwrites its own line
 * writes the same kind of text again. */
#ifndef COOP_VIEWS_LINE_H
#define COOP_VIEWS_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/views/runs.h"

#define COOP_LINE_MAX 65536u /* bytes; then the line counts as ended */
/* Movements to the right of the text leave at most so many columns blank, so that few bytes never
 * make much text. */
#define COOP_LINE_GAP_MAX 200u
/* Sequences that move or blank a whole line's text work on lines up to this: a longer one is
 * wrapped on every terminal, so that they mean something else there, and costs too much. */
#define COOP_LINE_COLUMNS 1000u

struct coop_glyph {
	uint64_t offset;
	uint8_t bytes[4];
	uint8_t size;
	bool flat;   /* all bytes came from `offset` */
	bool erased; /* a blank where something was: not shown at the end of a line */
};

/* Zero-initialise it. */
struct coop_line {
	struct coop_glyph *cells;
	size_t count, capacity;
	size_t column; /* where the next character goes; may be behind the text */
	size_t bytes;  /* of all cells */
	size_t lowest; /* first cell that changed since it was shown */
	size_t shown;  /* cells that stand at the end of the text */
	size_t shown_bytes;
};

void coop_line_clear(struct coop_line *line);
/* Whether one more character has no room: the caller then ends the line. */
static inline bool coop_line_is_full(const struct coop_line *line)
{
	return line->column >= line->count && line->bytes >= COOP_LINE_MAX;
}

/* Writes a character (cell.offset, bytes, size, flat) at the column. 0 or -ENOMEM. */
int coop_line_put(struct coop_line *line, const struct coop_glyph *cell);
void coop_line_back(struct coop_line *line);
static inline void coop_line_return(struct coop_line *line)
{
	line->column = 0;
}
/* A control sequence that says something about the present line: `final` ends it, `number` is its
 * first one or -1. Others are ignored. */
void coop_line_control(struct coop_line *line, char final, int number);

/* Brings the end of the text up to date with the line. 0 or -ENOMEM. */
int coop_line_show(struct coop_line *line, struct coop_placed_text *text);
/* Begins the next line. What was shown of this one stays. */
void coop_line_end(struct coop_line *line);

#endif
