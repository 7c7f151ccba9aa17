#include <stdlib.h>
#include <string.h>

#include "doors/cli/verbs/logs.h"

/* A chunk that may still be among the last lines. */
struct piece {
	struct piece *next, *before;
	struct coop_chunk chunk;
	size_t newlines;
	char at[COOP_CLOCK_TEXT]; /* "": unknown */
	char data[];
};

struct cli_logs_tail {
	struct piece *first, *last;
	uint64_t newlines; /* in all pieces */
	uint64_t count;
};

struct cli_logs_tail *cli_logs_tail_new(uint64_t count)
{
	struct cli_logs_tail *tail = calloc(1, sizeof(*tail));
	if (tail)
		tail->count = count;
	return tail;
}

static size_t count_newlines(const char *data, size_t size)
{
	size_t count = 0;
	for (const char *at = data; (at = memchr(at, '\n', size - (size_t)(at - data))); at++)
		count++;
	return count;
}

static void drop_first(struct cli_logs_tail *tail)
{
	struct piece *first = tail->first;
	tail->first = first->next;
	if (tail->first)
		tail->first->before = NULL;
	else
		tail->last = NULL;
	tail->newlines -= first->newlines;
	free(first);
}

void cli_logs_tail_take(void *user, const struct coop_chunk *chunk, const char *at)
{
	struct cli_logs_tail *tail = user;
	struct piece *piece = malloc(sizeof(*piece) + chunk->size);
	if (!piece)
		return;
	*piece = (struct piece){.chunk = *chunk, .before = tail->last};
	memcpy(piece->data, chunk->data, chunk->size);
	piece->chunk.data = piece->data;
	piece->newlines = count_newlines(piece->data, chunk->size);
	if (at)
		memcpy(piece->at, at, strnlen(at, sizeof(piece->at) - 1));
	*(tail->last ? &tail->last->next : &tail->first) = piece;
	tail->last = piece;
	tail->newlines += piece->newlines;
	/* More newlines than lines asked for: the first piece can hold none of them. */
	while (tail->first != tail->last && tail->newlines - tail->first->newlines > tail->count)
		drop_first(tail);
}

/* The piece in which the last lines begin, and where in it. A newline at the very end ends the last
 * line and begins none. */
static struct piece *find_start(const struct cli_logs_tail *tail, size_t *ret_skip)
{
	uint64_t wanted = tail->count;
	const struct piece *last = tail->last;
	if (last && last->chunk.size && last->data[last->chunk.size - 1] == '\n')
		wanted++;
	for (struct piece *piece = tail->last; piece; piece = piece->before)
		for (size_t i = piece->chunk.size; i > 0; i--)
			if (piece->data[i - 1] == '\n' && --wanted == 0) {
				*ret_skip = i;
				return piece;
			}
	*ret_skip = 0;
	return tail->first;
}

void cli_logs_tail_end(struct cli_logs_tail *tail, cli_logs_take *take, void *user)
{
	size_t skip = 0;
	struct piece *piece = tail->count ? find_start(tail, &skip) : NULL;
	for (; piece; piece = piece->next, skip = 0) {
		struct coop_chunk chunk = piece->chunk;
		chunk.data = piece->data + skip;
		chunk.offset += skip;
		chunk.size -= skip;
		if (chunk.size)
			take(user, &chunk, piece->at[0] ? piece->at : NULL);
	}
	while (tail->first)
		drop_first(tail);
	free(tail);
}
