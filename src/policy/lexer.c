#include "policy/lexer.h"

#include <ctype.h>
#include <string.h>

#include "policy/draft.h"
#include "policy/expansion.h"
#include "policy/parser.h"

static void lex_single(struct coop_lexer *lexer, struct coop_policy_draft *draft)
{
	const char *text = lexer->text + lexer->at;
	const char *end = memchr(text, '\'', lexer->size - lexer->at);
	size_t size = end ? (size_t)(end - text) : lexer->size - lexer->at;

	coop_draft_bytes(lexer, draft, text, size);
	lexer->at += size + (end != NULL);
}

/* ~ and ~/..; of ~name only that it is not known. */
static void lex_tilde(struct coop_lexer *lexer, struct coop_policy_draft *draft)
{
	char next = coop_lexer_peek(lexer, 0);

	if (lexer->out->home && (!next || strchr("/ \t\n;&|)<>:", next))) {
		coop_draft_text(lexer, draft, lexer->out->home);
		draft->begun = true;
		return;
	}
	bool unknown = isalpha((unsigned char)next) || next == '+' || next == '-';
	if (unknown)
		coop_draft_unsure(lexer, draft);
	coop_draft_put(lexer, draft, '~');
	if (unknown)
		coop_draft_sure(lexer, draft);
}

static void lex_plain(struct coop_lexer *lexer, struct coop_policy_draft *draft, char c)
{
	struct coop_words *out = lexer->out;
	bool at_start = out->scratch_count == draft->start ||
			out->scratch[out->scratch_count - 1] == '=' ||
			out->scratch[out->scratch_count - 1] == ':';

	if (c == '~' && at_start) {
		lex_tilde(lexer, draft);
		return;
	}
	if (strchr("*?[", c))
		draft->flags |= COOP_WORD_GLOB;
	if (strchr("{,}", c))
		coop_draft_brace(lexer, draft, c);
	coop_draft_put(lexer, draft, c);
}

/* The place is after `c`, which begins a quotation, an expansion, or is an ordinary byte. */
static void lex_part(struct coop_lexer *lexer, struct coop_policy_draft *draft, char c)
{
	switch (c) {
	case '\\':
		if (lexer->at == lexer->size)
			return;
		c = lexer->text[lexer->at++];
		draft->flags |= COOP_WORD_QUOTED;
		if (c != '\n')
			coop_draft_put(lexer, draft, c);
		return;
	case '\'':
		draft->flags |= COOP_WORD_QUOTED;
		lex_single(lexer, draft);
		return;
	case '"':
		draft->flags |= COOP_WORD_QUOTED;
		coop_expansion_double(lexer, draft, '"');
		return;
	case '$':
		coop_expansion_dollar(lexer, draft, false);
		return;
	case '`':
		coop_expansion_backquote(lexer, draft, false);
		return;
	case '<':
	case '>': /* only as <( and >( */
		lexer->at++;
		coop_parser_inside(lexer, draft->id, COOP_VIA_PROCESS);
		draft->flags |= COOP_WORD_SUBSTITUTED;
		coop_draft_unsure(lexer, draft);
		coop_draft_text(lexer, draft, "$()");
		coop_draft_sure(lexer, draft);
		return;
	default:
		lex_plain(lexer, draft, c);
	}
}

static bool ends_word(const struct coop_lexer *lexer)
{
	char c = coop_lexer_peek(lexer, 0);

	if (c == '<' || c == '>')
		return coop_lexer_peek(lexer, 1) != '(';
	return !c || strchr(" \t\n;&|()", c) != NULL;
}

/* How many bytes from the place on mean nothing but themselves. */
static size_t plain_size(const struct coop_lexer *lexer)
{
	static const bool special[256] = {
		['\0'] = true, [' '] = true,  ['\t'] = true, ['\n'] = true, [';'] = true,
		['&'] = true,  ['|'] = true,  ['('] = true,  [')'] = true,  ['<'] = true,
		['>'] = true,  ['\\'] = true, ['\''] = true, ['"'] = true,  ['$'] = true,
		['`'] = true,  ['~'] = true,  ['*'] = true,  ['?'] = true,  ['['] = true,
		['{'] = true,  [','] = true,  ['}'] = true,
	};
	size_t at = lexer->at;

	while (at < lexer->size && !special[(unsigned char)lexer->text[at]])
		at++;
	return at - lexer->at;
}

bool coop_lexer_word(struct coop_lexer *lexer, enum coop_role role)
{
	struct coop_policy_draft draft;

	if (ends_word(lexer))
		return false;
	coop_draft_init(lexer, &draft, ++lexer->out->last_id);
	draft.role = (uint8_t)role;
	while (!ends_word(lexer) && !lexer->out->too_long && !lexer->out->no_memory) {
		size_t plain = plain_size(lexer);
		if (plain) {
			coop_draft_bytes(lexer, &draft, lexer->text + lexer->at, plain);
			lexer->at += plain;
			continue;
		}
		char c = lexer->text[lexer->at++];
		lex_part(lexer, &draft, c);
	}
	coop_draft_finish(lexer, &draft);
	return true;
}

void coop_lexer_blanks(struct coop_lexer *lexer)
{
	for (;;) {
		char c = coop_lexer_peek(lexer, 0);

		if (c == ' ' || c == '\t') {
			lexer->at++;
		} else if (c == '\\' && coop_lexer_peek(lexer, 1) == '\n') {
			lexer->at += 2;
		} else if (c == '#') {
			while (lexer->at < lexer->size && lexer->text[lexer->at] != '\n')
				lexer->at++;
		} else {
			return;
		}
	}
}

/* The line's size without its newline; moves past it. */
static size_t take_line(struct coop_lexer *lexer)
{
	const char *line = lexer->text + lexer->at;
	const char *newline = memchr(line, '\n', lexer->size - lexer->at);
	size_t size = newline ? (size_t)(newline - line) : lexer->size - lexer->at;

	lexer->at += size + (newline != NULL);
	return size;
}

/* The command that announced it may be finished by now, or not. */
static struct coop_word *word_with(struct coop_words *words, uint32_t id)
{
	/* Pending ones stand in the order of their ids. */
	for (size_t i = words->pending_count; i-- > 0 && words->pending[i].id >= id;) {
		if (words->pending[i].id == id)
			return &words->pending[i];
	}
	for (size_t i = words->word_count; i-- > 0;) {
		if (words->words[i].id == id) {
			coop_words_charge(words, words->word_count - i);
			return &words->words[i];
		}
	}
	return NULL;
}

static void put_body(struct coop_lexer *lexer, const struct coop_lexer_here *here, const char *body,
		     size_t size)
{
	struct coop_policy_draft draft;

	coop_draft_init(lexer, &draft, here->id);
	if (!here->plain) {
		lexer->command = here->command;
		coop_expansion_scan(lexer, &draft, body, size);
	}
	struct coop_word *word = word_with(lexer->out, here->id);
	if (word) {
		word->text = body;
		word->flags |= draft.flags;
	}
}

/* The bodies of the here-documents that were announced; the place is after a newline. */
static void here_bodies(struct coop_lexer *lexer)
{
	for (size_t i = 0; i < lexer->here_count; i++) {
		const struct coop_lexer_here *here = &lexer->here[i];
		size_t start = lexer->at, end = start;

		while (lexer->at < lexer->size) {
			const char *line = lexer->text + lexer->at;
			size_t size = take_line(lexer);
			while (here->tabs && size && *line == '\t') {
				line++;
				size--;
			}
			if (size == strlen(here->end) && !memcmp(line, here->end, size))
				break;
			end = lexer->at;
		}
		const char *body = coop_words_text(lexer->out, lexer->text + start, end - start);
		if (body)
			put_body(lexer, here, body, end - start);
	}
	lexer->here_count = 0;
}

bool coop_lexer_stopped(const struct coop_lexer *lexer)
{
	return lexer->at >= lexer->size || lexer->out->too_long || lexer->out->no_memory;
}

bool coop_lexer_at(const struct coop_lexer *lexer, const char *keyword)
{
	size_t size = strlen(keyword);

	if (lexer->size - lexer->at < size || memcmp(lexer->text + lexer->at, keyword, size) != 0)
		return false;
	char after = coop_lexer_peek(lexer, size);
	return !after || strchr(" \t\n;&|()<>", after);
}

bool coop_lexer_take(struct coop_lexer *lexer, const char *keyword)
{
	if (!coop_lexer_at(lexer, keyword))
		return false;
	lexer->at += strlen(keyword);
	return true;
}

static void newline(struct coop_lexer *lexer)
{
	lexer->at++;
	if (lexer->here_count)
		here_bodies(lexer);
}

void coop_lexer_lines(struct coop_lexer *lexer)
{
	coop_lexer_blanks(lexer);
	while (coop_lexer_peek(lexer, 0) == '\n') {
		newline(lexer);
		coop_lexer_blanks(lexer);
	}
}
