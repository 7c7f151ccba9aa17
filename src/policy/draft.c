#include "policy/draft.h"

#include <string.h>

#include "policy/words.h"

/* Not zeroed as a whole: most words have no braces. */
void coop_draft_init(struct coop_lexer *lexer, struct coop_policy_draft *draft, uint32_t id)
{
	draft->start = lexer->out->scratch_count;
	draft->id = id;
	draft->flags = 0;
	draft->role = COOP_ROLE_ARGUMENT;
	draft->begun = draft->unsure = draft->braces_closed = false;
	draft->part_count = 0;
}

void coop_draft_unsure(struct coop_lexer *lexer, struct coop_policy_draft *draft)
{
	draft->flags |= COOP_WORD_COMPUTED;
	if (!draft->unsure)
		draft->head = lexer->out->scratch_count;
	draft->unsure = true;
}

void coop_draft_sure(struct coop_lexer *lexer, struct coop_policy_draft *draft)
{
	draft->tail = lexer->out->scratch_count;
}

void coop_draft_put(struct coop_lexer *lexer, struct coop_policy_draft *draft, char byte)
{
	coop_words_add_scratch(lexer->out, &byte, 1);
	draft->begun = true;
}

void coop_draft_bytes(struct coop_lexer *lexer, struct coop_policy_draft *draft, const char *bytes,
		      size_t size)
{
	coop_words_add_scratch(lexer->out, bytes, size);
	draft->begun = true;
}

void coop_draft_text(struct coop_lexer *lexer, struct coop_policy_draft *draft, const char *text)
{
	if (*text)
		coop_draft_bytes(lexer, draft, text, strlen(text));
}

static uint8_t shortened(size_t size)
{
	return size < COOP_WORD_LITERAL ? (uint8_t)size : COOP_WORD_LITERAL - 1;
}

static void push(struct coop_lexer *lexer, const struct coop_policy_draft *draft, const char *bytes,
		 size_t size)
{
	const struct coop_words *out = lexer->out;
	bool whole = draft->part_count < 3;
	char *text = coop_words_text(lexer->out, bytes, size);

	uint8_t head = COOP_WORD_LITERAL, tail = COOP_WORD_LITERAL;
	if (draft->unsure) {
		/* Where the parts of braces end is not followed. */
		head = whole ? shortened(draft->head - draft->start) : 0;
		tail = whole ? shortened(out->scratch_count - draft->tail) : 0;
	}
	if (text)
		coop_words_add_pending(lexer->out, (struct coop_word){.text = text,
								      .id = draft->id,
								      .flags = draft->flags,
								      .role = draft->role,
								      .head = head,
								      .tail = tail});
}

/* Puts a part of the scratch at its end once more. The scratch may move while it grows, so room
 * comes first. */
static void repeat(struct coop_words *out, size_t from, size_t size)
{
	static const char filler[64];
	size_t at = out->scratch_count;

	for (size_t left = size; left;) {
		size_t part = left < sizeof filler ? left : sizeof filler;
		coop_words_add_scratch(out, filler, part);
		left -= part;
	}
	if (out->scratch_count == at + size)
		memcpy(out->scratch + at, out->scratch + from, size);
}

/* a{b,c}d is abd acd. Only one pair of braces of a word is looked at. */
static void push_parts(struct coop_lexer *lexer, const struct coop_policy_draft *draft)
{
	struct coop_words *out = lexer->out;
	size_t open = draft->parts[0], close = draft->parts[draft->part_count - 1];
	size_t size = out->scratch_count - draft->start;

	for (unsigned i = 0; i + 1 < draft->part_count; i++) {
		size_t at = out->scratch_count;

		repeat(out, draft->start, open);
		repeat(out, draft->start + draft->parts[i] + 1,
		       draft->parts[i + 1] - draft->parts[i] - 1);
		repeat(out, draft->start + close + 1, size - close - 1);
		if (out->scratch_count > at)
			push(lexer, draft, out->scratch + at, out->scratch_count - at);
		out->scratch_count = at;
	}
}

void coop_draft_finish(struct coop_lexer *lexer, struct coop_policy_draft *draft)
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
	draft->begun = draft->unsure = false;
	draft->part_count = 0;
	draft->braces_closed = false;
}

void coop_draft_brace(struct coop_lexer *lexer, struct coop_policy_draft *draft, char byte)
{
	size_t offset = lexer->out->scratch_count - draft->start;

	if (draft->braces_closed)
		return;
	if (draft->part_count == COOP_DRAFT_PARTS) {
		lexer->out->too_long = true;
		return;
	}
	if (byte == '{' && !draft->part_count) {
		draft->parts[draft->part_count++] = offset;
	} else if (draft->part_count && (byte == ',' || byte == '}')) {
		draft->parts[draft->part_count++] = offset;
		draft->braces_closed = byte == '}';
	}
}

void coop_draft_value(struct coop_lexer *lexer, struct coop_policy_draft *draft, const char *value,
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
