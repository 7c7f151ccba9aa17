#include "policy/draft.h"

#include <string.h>

void coop_draft_put(struct coop_lexer *lexer, struct coop_draft *draft, char byte)
{
	coop_words_add_scratch(lexer->out, byte);
	draft->begun = true;
}

void coop_draft_text(struct coop_lexer *lexer, struct coop_draft *draft, const char *text)
{
	while (*text)
		coop_draft_put(lexer, draft, *text++);
}

static void push(struct coop_lexer *lexer, const struct coop_draft *draft, const char *bytes,
		 size_t size)
{
	char *text = coop_words_text(lexer->out, bytes, size);

	if (text)
		coop_words_add_pending(lexer->out, (struct coop_word){.text = text,
								      .id = draft->id,
								      .flags = draft->flags,
								      .role = draft->role});
}

/* a{b,c}d is abd acd. Only one pair of braces of a word is looked at. */
static void push_parts(struct coop_lexer *lexer, const struct coop_draft *draft)
{
	struct coop_words *out = lexer->out;
	size_t open = draft->parts[0], close = draft->parts[draft->part_count - 1];
	size_t size = out->scratch_count - draft->start;

	for (unsigned i = 0; i + 1 < draft->part_count; i++) {
		size_t from = draft->parts[i] + 1, to = draft->parts[i + 1];
		size_t at = out->scratch_count, end = draft->start + size;

		for (size_t k = draft->start; k < draft->start + open; k++)
			coop_words_add_scratch(out, out->scratch[k]);
		for (size_t k = draft->start + from; k < draft->start + to; k++)
			coop_words_add_scratch(out, out->scratch[k]);
		for (size_t k = draft->start + close + 1; k < end; k++)
			coop_words_add_scratch(out, out->scratch[k]);
		if (out->scratch_count > at)
			push(lexer, draft, out->scratch + at, out->scratch_count - at);
		out->scratch_count = at;
	}
}

void coop_draft_finish(struct coop_lexer *lexer, struct coop_draft *draft)
{
	struct coop_words *out = lexer->out;

	if (draft->begun) {
		if (draft->braces_closed && draft->part_count > 2)
			push_parts(lexer, draft);
		else
			push(lexer, draft, out->scratch + draft->start,
			     out->scratch_count - draft->start);
	}
	out->scratch_count = draft->start;
	draft->begun = false;
	draft->part_count = 0;
	draft->braces_closed = false;
}

void coop_draft_brace(struct coop_lexer *lexer, struct coop_draft *draft, char byte)
{
	size_t offset = lexer->out->scratch_count - draft->start;

	if (draft->braces_closed || draft->part_count == COOP_DRAFT_PARTS)
		return;
	if (byte == '{' && !draft->part_count) {
		draft->parts[draft->part_count++] = offset;
	} else if (draft->part_count && (byte == ',' || byte == '}')) {
		draft->parts[draft->part_count++] = offset;
		draft->braces_closed = byte == '}';
	}
}

void coop_draft_value(struct coop_lexer *lexer, struct coop_draft *draft, const char *value,
		      bool quoted)
{
	for (; *value && !lexer->out->too_long; value++) {
		if (!quoted && strchr(" \t\n", *value)) {
			coop_draft_finish(lexer, draft);
			continue;
		}
		if (!quoted && strchr("*?[", *value))
			draft->flags |= COOP_WORD_GLOB;
		coop_draft_put(lexer, draft, *value);
	}
}
