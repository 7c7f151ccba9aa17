/* A text that fits a budget: its head and its tail, cut at lines where that costs little, never
 * within a character, and what was left out named exactly. */
#ifndef COOP_VIEWS_BUDGET_H
#define COOP_VIEWS_BUDGET_H

#include <stddef.h>

struct coop_budget_cut {
	size_t head; /* bytes of the front that stay */
	/* bytes of the end that stay: the text's last ones. Both are the whole text if it fits
	 * (tail 0) */
	size_t tail;
};

/* How a text of `size` bytes of valid UTF-8 is cut to at most `budget`: a third at the front, the
 * rest at the end. A cut goes to the start of a line if one is within an eighth of its part, else
 * to a character's. */
struct coop_budget_cut coop_budget_cut(const char *text, size_t size, size_t budget);
/* The longest beginning of at most `budget` bytes that splits no character. */
size_t coop_budget_head(const char *text, size_t size, size_t budget);
/* The same at the end. */
size_t coop_budget_tail(const char *text, size_t size, size_t budget);

#endif
