#include "policy/parser.h"

#include <string.h>

#include "policy/expansion.h"
#include "policy/simple.h"

/* Words that end a list: what they belong to is still open. */
static const char *const list_ends[] = {"then", "do",   "done", "fi", "elif",
					"else", "esac", "}",    NULL};

static void parse_list(struct coop_lexer *lexer);
static void parse_command(struct coop_lexer *lexer);

static const char *at_list_end(const struct coop_lexer *lexer)
{
	for (size_t i = 0; list_ends[i]; i++) {
		if (coop_lexer_at(lexer, list_ends[i]))
			return list_ends[i];
	}
	return NULL;
}

static bool enter(struct coop_lexer *lexer)
{
	if (lexer->depth >= COOP_WORDS_DEPTH_MAX) {
		lexer->out->too_long = true;
		return false;
	}
	lexer->depth++;
	lexer->groups++;
	return true;
}

static void leave(struct coop_lexer *lexer)
{
	lexer->depth--;
	lexer->groups--;
}

/* A function's body: what follows its name, which is `command`. */
static void parse_body(struct coop_lexer *lexer, const char *name, uint32_t command)
{
	coop_lexer_lines(lexer);
	if (enter(lexer)) {
		parse_command(lexer);
		leave(lexer);
	}
	coop_words_add_function(lexer->out,
				(struct coop_function){.name = name,
						       .first = command + 1,
						       .end = (uint32_t)lexer->out->command_count});
}

bool coop_parser_function(struct coop_lexer *lexer, const char *name, uint32_t command)
{
	struct coop_lexer ahead = *lexer;

	ahead.at++;
	coop_lexer_blanks(&ahead);
	if (coop_lexer_peek(&ahead, 0) != ')')
		return false;
	lexer->at = ahead.at + 1;
	parse_body(lexer, name, command);
	return true;
}

/* Lists up to `end`, with then, do, else … between them. */
static void parse_until(struct coop_lexer *lexer, const char *end)
{
	while (!coop_lexer_stopped(lexer)) {
		parse_list(lexer);
		const char *found = at_list_end(lexer);
		if (!found)
			return; /* the text or the parentheses around it end here */
		lexer->at += strlen(found);
		if (!strcmp(found, end))
			return;
	}
}

/* for NAME in WORDS; the place is after `for`. With one word the variable is known. */
static void parse_for(struct coop_lexer *lexer)
{
	struct coop_words *out = lexer->out;
	size_t from = out->pending_count;

	coop_lexer_blanks(lexer);
	if (coop_lexer_peek(lexer, 0) == '(') { /* for ((;;)) */
		while (!coop_lexer_stopped(lexer) && !coop_lexer_at(lexer, "do") &&
		       coop_lexer_peek(lexer, 0) != '\n')
			lexer->at++;
		return;
	}
	uint32_t outer = lexer->command, command = coop_simple_begin(lexer);
	if (command == COOP_SIMPLE_NONE)
		return;
	(void)coop_lexer_word(lexer, COOP_ROLE_ARGUMENT);
	coop_lexer_lines(lexer);
	bool listed = coop_lexer_take(lexer, "in");
	do
		coop_lexer_blanks(lexer);
	while (listed && !coop_lexer_stopped(lexer) && coop_lexer_word(lexer, COOP_ROLE_ARGUMENT));
	if (out->pending_count > from) {
		const struct coop_word *words = out->pending + from;
		bool known =
			out->pending_count == from + 2 && !(words[1].flags & COOP_WORD_COMPUTED);
		coop_words_assign(out, words->text, strlen(words->text),
				  known ? words[1].text : NULL);
	}
	/* The words are no command: only what substitutions in them run counts. */
	out->pending_count = from;
	lexer->command = outer;
}

/* case WORD in PATTERN) LIST ;; … esac; the place is after `case`. */
static void parse_case(struct coop_lexer *lexer)
{
	size_t from = lexer->out->pending_count;

	if (coop_simple_begin(lexer) == COOP_SIMPLE_NONE)
		return;
	coop_lexer_blanks(lexer);
	(void)coop_lexer_word(lexer, COOP_ROLE_ARGUMENT);
	coop_lexer_lines(lexer);
	(void)coop_lexer_take(lexer, "in");
	while (!coop_lexer_stopped(lexer)) {
		coop_lexer_lines(lexer);
		if (coop_lexer_take(lexer, "esac"))
			break;
		/* The patterns, up to the parenthesis. */
		lexer->at += coop_lexer_peek(lexer, 0) == '(';
		while (!coop_lexer_stopped(lexer) && coop_lexer_peek(lexer, 0) != ')') {
			coop_lexer_blanks(lexer);
			if (coop_lexer_peek(lexer, 0) != ')' &&
			    !coop_lexer_word(lexer, COOP_ROLE_ARGUMENT))
				lexer->at += !coop_lexer_stopped(lexer);
		}
		lexer->at += !coop_lexer_stopped(lexer);
		lexer->out->pending_count = from;
		parse_list(lexer);
		while (coop_lexer_peek(lexer, 0) == ';' || coop_lexer_peek(lexer, 0) == '&')
			lexer->at++;
	}
	lexer->out->pending_count = from;
}

static void parse_subshell(struct coop_lexer *lexer)
{
	const char *cwd = lexer->cwd;

	lexer->at++;
	/* Commands in arithmetic need one that they stand in. */
	if (coop_lexer_peek(lexer, 0) == '(' &&
	    (coop_simple_begin(lexer) == COOP_SIMPLE_NONE || coop_expansion_arithmetic(lexer)))
		return;
	parse_list(lexer);
	if (coop_lexer_peek(lexer, 0) == ')')
		lexer->at++;
	lexer->cwd = cwd;
}

/* The compound command that stands here, or false. */
static bool parse_compound(struct coop_lexer *lexer)
{
	static const struct {
		const char *begin, *end;
	} groups[] = {{"if", "fi"}, {"while", "done"}, {"until", "done"}, {"{", "}"}};

	if (coop_lexer_peek(lexer, 0) == '(') {
		parse_subshell(lexer);
		return true;
	}
	for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
		if (coop_lexer_take(lexer, groups[i].begin)) {
			parse_until(lexer, groups[i].end);
			return true;
		}
	}
	if (coop_lexer_take(lexer, "for") || coop_lexer_take(lexer, "select")) {
		parse_for(lexer);
		parse_until(lexer, "done");
		return true;
	}
	if (coop_lexer_take(lexer, "case")) {
		parse_case(lexer);
		return true;
	}
	return false;
}

/* `function NAME [()] body` is read as `NAME () body`. */
static bool parse_named_function(struct coop_lexer *lexer)
{
	size_t from = lexer->out->pending_count;

	if (!coop_lexer_take(lexer, "function"))
		return false;
	uint32_t command = coop_simple_begin(lexer);
	coop_lexer_blanks(lexer);
	if (command == COOP_SIMPLE_NONE || !coop_lexer_word(lexer, COOP_ROLE_ARGUMENT))
		return true;
	const char *name = lexer->out->pending_count > from ? lexer->out->pending[from].text : "";
	lexer->out->pending_count = from;
	coop_lexer_blanks(lexer);
	if (coop_lexer_peek(lexer, 0) == '(' && coop_parser_function(lexer, name, command))
		return true;
	parse_body(lexer, name, command);
	return true;
}

static void parse_command(struct coop_lexer *lexer)
{
	coop_lexer_lines(lexer);
	while (coop_lexer_take(lexer, "!") || coop_lexer_take(lexer, "coproc"))
		coop_lexer_lines(lexer);
	if (coop_lexer_stopped(lexer) || !enter(lexer))
		return;
	bool compound = parse_compound(lexer) || parse_named_function(lexer);
	leave(lexer);
	if (compound)
		coop_simple_trailing(lexer);
	else
		coop_simple_read(lexer);
}

static void parse_pipeline(struct coop_lexer *lexer)
{
	struct coop_words *out = lexer->out;
	uint32_t first = (uint32_t)out->command_count;

	parse_command(lexer);
	for (;;) {
		coop_lexer_blanks(lexer);
		if (coop_lexer_peek(lexer, 0) != '|' || coop_lexer_peek(lexer, 1) == '|' ||
		    coop_lexer_stopped(lexer))
			break;
		lexer->at += coop_lexer_peek(lexer, 1) == '&' ? 2 : 1;
		uint32_t middle = (uint32_t)out->command_count;
		parse_command(lexer);
		coop_words_add_pipe(out, (struct coop_pipe){.first = first,
							    .middle = middle,
							    .end = (uint32_t)out->command_count});
	}
	if (coop_lexer_peek(lexer, 0) == '&' && coop_lexer_peek(lexer, 1) != '&') {
		for (size_t i = first; i < out->command_count; i++)
			out->commands[i].background = true;
	}
}

/* Up to what ends it: a word of list_ends, `)` or `;;` where one is open, or the text's end. */
static void parse_list(struct coop_lexer *lexer)
{
	while (!coop_lexer_stopped(lexer)) {
		coop_lexer_lines(lexer);
		char c = coop_lexer_peek(lexer, 0);

		if (c == ';' && coop_lexer_peek(lexer, 1) == ';' && lexer->groups)
			return;
		if (c == ')' && (lexer->groups || lexer->inside))
			return;
		if (c == '&' && coop_lexer_peek(lexer, 1) == '>') {
			parse_pipeline(lexer);
			continue;
		}
		if (c == ';' || c == '&' || c == '|' || c == ')') {
			lexer->at++;
			continue;
		}
		const char *end = at_list_end(lexer);
		if (end && lexer->groups)
			return;
		size_t before = lexer->at;
		if (end)
			lexer->at += strlen(end);
		else
			parse_pipeline(lexer);
		/* Whatever this is, it must not hold us up. */
		lexer->at += lexer->at == before && !coop_lexer_stopped(lexer);
	}
}

void coop_parser_inside(struct coop_lexer *lexer, uint32_t word, enum coop_via via)
{
	struct coop_lexer inside = *lexer;

	if (lexer->depth >= COOP_WORDS_DEPTH_MAX) {
		lexer->out->too_long = true;
		return;
	}
	inside.parent = lexer->command;
	inside.word = word;
	inside.via = (uint8_t)via;
	inside.depth++;
	inside.groups = 0;
	inside.inside = true;
	inside.here_count = 0;
	parse_list(&inside);
	lexer->at = inside.at;
	if (coop_lexer_peek(lexer, 0) == ')')
		lexer->at++;
}

void coop_parser_read(struct coop_words *words, const char *text, size_t size,
		      const struct coop_parser_place *place)
{
	struct coop_lexer lexer = {.out = words,
				   .text = text,
				   .size = size,
				   .cwd = place->cwd,
				   .command = place->parent,
				   .parent = place->parent,
				   .word = place->word,
				   .via = (uint8_t)place->via,
				   .depth = place->depth};

	words->total += size;
	if (place->depth >= COOP_WORDS_DEPTH_MAX || size > COOP_WORDS_TEXT_MAX ||
	    words->total > COOP_WORDS_TOTAL_MAX) {
		words->too_long = true;
		return;
	}
	parse_list(&lexer);
}
