/* What a person would see now on a terminal that has been sent these bytes. By libvterm. */
#ifndef COOP_VIEWS_SCREEN_H
#define COOP_VIEWS_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#define COOP_SCREEN_COLS_MAX 1000
#define COOP_SCREEN_ROWS_MAX 1000

struct coop_screen;

/* What a screen may cost: cells moved, by lines that scroll and the like. On 80 by 24 that is 200
 * 000 lines, on larger ones fewer, and no more than some seconds of work in all. */
#define COOP_SCREEN_WORK_MAX 400000000u

/* Sizes beyond the bounds are clamped, and there are at least 2 columns. NULL without memory. */
struct coop_screen *coop_screen_new(unsigned cols, unsigned rows);
void coop_screen_free(struct coop_screen *screen); /* NULL is fine */
/* Shows more bytes. What is shown does not depend on how they were cut. Needs no memory. */
void coop_screen_feed(struct coop_screen *screen, const void *bytes, size_t size);
/* It has met COOP_SCREEN_WORK_MAX and shows nothing more: begin anew with later bytes. Feed it with
 * the end of a long output only. */
bool coop_screen_is_worn_out(const struct coop_screen *screen);

struct coop_screen_cursor {
	unsigned col, row; /* from 0 */
	bool visible;
};
struct coop_screen_cursor coop_screen_cursor(const struct coop_screen *screen);
bool coop_screen_is_alternate(
	const struct coop_screen *screen); /* a full-screen program shows itself */
/* The window's title as the program set it, cut at about 250 bytes, "" if it did not. */
const char *coop_screen_title(const struct coop_screen *screen);
/* Row `row` as UTF-8 without spaces at its end, "" beyond the last; *ret is the caller's. 0 or
 * -ENOMEM. */
int coop_screen_line(const struct coop_screen *screen, unsigned row, char **ret);

#endif
