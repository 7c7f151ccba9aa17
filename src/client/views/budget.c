#include "client/views/budget.h"

#include <stdbool.h>

/* A cut gives up at most this part of what it may keep for the sake of a whole line. */
#define LINE_SHARE 8

static bool is_continuation(char byte)
{
	return ((unsigned char)byte & 0xc0) == 0x80;
}

size_t coop_budget_head(const char *text, size_t size, size_t budget)
{
	if (size <= budget)
		return size;
	while (budget > 0 && is_continuation(text[budget]))
		budget--;
	return budget;
}

size_t coop_budget_tail(const char *text, size_t size, size_t budget)
{
	size_t start = size <= budget ? 0 : size - budget;

	if (!start)
		return size;
	while (start < size && is_continuation(text[start]))
		start++;
	return size - start;
}

/* The end of the front part: behind the last line that ends within its last eighth. */
static size_t cut_head(const char *text, size_t size, size_t budget)
{
	for (size_t end = budget; end > 0 && budget - end <= budget / LINE_SHARE; end--) {
		if (text[end - 1] == '\n')
			return end;
	}
	return coop_budget_head(text, size, budget);
}

static size_t cut_tail(const char *text, size_t size, size_t budget)
{
	for (size_t kept = budget; kept > 0 && budget - kept <= budget / LINE_SHARE; kept--) {
		if (text[size - kept - 1] == '\n')
			return kept;
	}
	return coop_budget_tail(text, size, budget);
}

struct coop_budget_cut coop_budget_cut(const char *text, size_t size, size_t budget)
{
	if (size <= budget)
		return (struct coop_budget_cut){.head = size};
	size_t front = budget / 3;
	return (struct coop_budget_cut){
		.head = cut_head(text, size, front),
		.tail = cut_tail(text, size, budget - front),
	};
}
