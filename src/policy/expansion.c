#include "policy/expansion.h"

#include <ctype.h>
#include <string.h>

#include "policy/lexer.h"
#include "policy/parser.h"
#include "policy/words.h"

static void put_variable(struct coop_lexer *lexer, struct coop_policy_draft *draft,
			 const char *name, size_t size, bool quoted)
{
	const struct coop_variable *variable = coop_words_variable(lexer->out, name, size);
	const char *value = variable ? variable->value : NULL;

	coop_words_charge(lexer->out, lexer->out->variable_count / 4);
	if (!variable && size == 4 && !memcmp(name, "HOME", 4))
		value = lexer->out->home;
	else if (!variable && size == 3 && !memcmp(name, "PWD", 3))
		value = lexer->cwd;
	else if (!variable && size == 3 && !memcmp(name, "IFS", 3))
		value = " \t\n";
	if (value) {
		coop_draft_value(lexer, draft, value, quoted);
		return;
	}
	coop_draft_unsure(lexer, draft);
	coop_draft_put(lexer, draft, '$');
	coop_draft_bytes(lexer, draft, name, size);
	coop_draft_sure(lexer, draft);
}

void coop_expansion_scan(struct coop_lexer *lexer, struct coop_policy_draft *draft,
			 const char *text, size_t size)
{
	struct coop_lexer part = *lexer;
	struct coop_policy_draft thrown;

	if (lexer->depth >= COOP_WORDS_DEPTH_MAX) {
		lexer->out->too_long = true;
		return;
	}
	coop_draft_init(lexer, &thrown, draft->id);
	part.text = text;
	part.size = size;
	part.at = 0;
	part.depth++;
	part.here_count = 0;
	coop_expansion_double(&part, &thrown, '\0');
	lexer->out->scratch_count = thrown.start;
	draft->flags |= thrown.flags & COOP_WORD_SUBSTITUTED;
}

/* The distance from the place to the bracket that closes the one just before it, quotes minded; the
 * rest if none does. */
static size_t closing(const struct coop_lexer *lexer, char open, char close)
{
	size_t depth = 1, i = lexer->at;
	char quote = '\0';

	for (; i < lexer->size; i++) {
		char c = lexer->text[i];

		if (c == '\\' && quote != '\'')
			i++;
		else if (quote)
			quote = c == quote ? '\0' : quote;
		else if (c == '\'' || c == '"')
			quote = c;
		else if (c == open)
			depth++;
		else if (c == close && --depth == 0)
			break;
	}
	size_t size = (i < lexer->size ? i : lexer->size) - lexer->at;
	/* What is inside is read again. */
	coop_words_charge(lexer->out, size);
	return size;
}

/* ${name:-default}: the variable where it is known, else the default, which it may or may not
 * be. */
static bool put_default(struct coop_lexer *lexer, struct coop_policy_draft *draft, const char *name,
			size_t name_size, const char *rest, size_t size, bool quoted)
{
	size_t skip = *rest == ':';

	if (skip >= size || !strchr("-=?", rest[skip]) || lexer->depth >= COOP_WORDS_DEPTH_MAX)
		return false;
	uint8_t before = draft->flags;
	size_t start = lexer->out->scratch_count;
	put_variable(lexer, draft, name, name_size, quoted);
	if (!(draft->flags & ~before & COOP_WORD_COMPUTED) || rest[skip] == '?')
		return true;
	struct coop_lexer part = *lexer;
	part.text = rest + skip + 1;
	part.size = size - skip - 1;
	part.at = 0;
	part.depth++;
	lexer->out->scratch_count = start;
	coop_expansion_double(&part, draft, '\0');
	coop_draft_sure(lexer, draft);
	return true;
}

/* ${..}; the place is after the opening brace. */
static void lex_parameter(struct coop_lexer *lexer, struct coop_policy_draft *draft, bool quoted)
{
	size_t size = closing(lexer, '{', '}'), name = 0;
	const char *inside = lexer->text + lexer->at;

	lexer->at += size;
	lexer->at += lexer->at < lexer->size;
	while (name < size && (isalnum((unsigned char)inside[name]) || inside[name] == '_'))
		name++;
	if (name && name == size) {
		put_variable(lexer, draft, inside, name, quoted);
		return;
	}
	if (name && put_default(lexer, draft, inside, name, inside + name, size - name, quoted))
		return;
	coop_expansion_scan(lexer, draft, inside, size);
	coop_draft_unsure(lexer, draft);
	coop_draft_text(lexer, draft, "$_");
	coop_draft_sure(lexer, draft);
}

/* What a substitution gives, where that is plain: pwd, echo WORDS, which NAME. NULL otherwise. */
static const char *known_output(struct coop_lexer *lexer, size_t before)
{
	struct coop_words *out = lexer->out;

	if (out->command_count == before)
		return ""; /* $() */
	if (out->command_count != before + 1)
		return NULL;
	const struct coop_simple *command = &out->commands[before];
	const struct coop_word *word = coop_words_of(out, command);
	if (!command->arguments || command->redirects)
		return NULL;
	for (size_t i = 0; i < command->arguments; i++) {
		if (word[i].flags & (COOP_WORD_COMPUTED | COOP_WORD_GLOB))
			return NULL;
	}
	if (!strcmp(word->text, ":") || !strcmp(word->text, "true"))
		return "";
	if (command->arguments == 1 && !strcmp(word->text, "pwd"))
		return command->cwd;
	if (command->arguments == 2 &&
	    (!strcmp(word->text, "echo") || !strcmp(word->text, "which")))
		return word[1].text;
	if (command->arguments == 3 && !strcmp(word->text, "command") &&
	    !strcmp(word[1].text, "-v"))
		return word[2].text;
	return NULL;
}

/* Commands have been read; `before` says how many there were. What they print stands in for
 * them. */
static void put_substitution(struct coop_lexer *lexer, struct coop_policy_draft *draft,
			     size_t before, bool quoted)
{
	const char *output = known_output(lexer, before);

	if (output) {
		coop_draft_value(lexer, draft, output, quoted);
		return;
	}
	draft->flags |= COOP_WORD_SUBSTITUTED;
	coop_draft_unsure(lexer, draft);
	/* Not the text itself: it has been read, and must not be once more if this word is a text
	 * for a shell. */
	coop_draft_text(lexer, draft, "$()");
	coop_draft_sure(lexer, draft);
}

/* (( .. )); the place is after the first parenthesis. Only where both are closed together is it
 * arithmetic, anything else is a subshell in a subshell. */
static bool take_arithmetic(struct coop_lexer *lexer, struct coop_policy_draft *draft)
{
	struct coop_lexer second = *lexer;

	if (coop_lexer_peek(lexer, 0) != '(')
		return false;
	second.at++;
	size_t size = closing(&second, '(', ')');
	if (coop_lexer_peek(&second, size) != ')' || coop_lexer_peek(&second, size + 1) != ')')
		return false;
	coop_expansion_scan(lexer, draft, lexer->text + second.at, size);
	lexer->at = second.at + size + 2;
	return true;
}

bool coop_expansion_arithmetic(struct coop_lexer *lexer)
{
	struct coop_policy_draft draft;

	coop_draft_init(lexer, &draft, ++lexer->out->last_id);
	return take_arithmetic(lexer, &draft);
}

/* $(( .. )) and $( .. ); the place is after the first parenthesis. */
static void lex_parenthesis(struct coop_lexer *lexer, struct coop_policy_draft *draft, bool quoted)
{
	size_t before = lexer->out->command_count;

	if (take_arithmetic(lexer, draft)) {
		coop_draft_unsure(lexer, draft);
		coop_draft_text(lexer, draft, "$_");
		coop_draft_sure(lexer, draft);
		return;
	}
	coop_parser_inside(lexer, draft->id, COOP_VIA_SUBSTITUTION);
	put_substitution(lexer, draft, before, quoted);
}

/* Inside, a backslash takes the meaning from $ ` and \ before anything is read. */
void coop_expansion_backquote(struct coop_lexer *lexer, struct coop_policy_draft *draft,
			      bool quoted)
{
	struct coop_words *out = lexer->out;
	size_t start = out->scratch_count, before = out->command_count;

	while (lexer->at < lexer->size && coop_lexer_peek(lexer, 0) != '`' && !out->too_long) {
		if (coop_lexer_peek(lexer, 0) == '\\' && coop_lexer_peek(lexer, 1) &&
		    strchr("$`\\", coop_lexer_peek(lexer, 1)))
			lexer->at++;
		coop_words_add_scratch(out, lexer->text + lexer->at, lexer->at < lexer->size);
		lexer->at++;
	}
	lexer->at += lexer->at < lexer->size;
	size_t size = out->scratch_count - start;
	const char *text = coop_words_text(out, out->scratch + start, size);
	out->scratch_count = start;
	if (text)
		coop_parser_read(out, text, size,
				 &(struct coop_parser_place){.cwd = lexer->cwd,
							     .parent = lexer->command,
							     .word = draft->id,
							     .via = COOP_VIA_SUBSTITUTION,
							     .depth = lexer->depth + 1});
	put_substitution(lexer, draft, before, quoted);
}

static int digit_of(char c, int base)
{
	int value = c >= '0' && c <= '9'   ? c - '0'
		    : c >= 'a' && c <= 'f' ? c - 'a' + 10
		    : c >= 'A' && c <= 'F' ? c - 'A' + 10
					   : 99;

	return value < base ? value : -1;
}

static unsigned lex_number(struct coop_lexer *lexer, int base, int digits)
{
	unsigned value = 0;

	while (digits-- > 0 && digit_of(coop_lexer_peek(lexer, 0), base) >= 0)
		value = value * (unsigned)base + (unsigned)digit_of(lexer->text[lexer->at++], base);
	return value;
}

/* An escape of $'..'; the place is after the backslash. */
static char lex_escape(struct coop_lexer *lexer)
{
	static const char names[] = "abeEfnrtv", values[] = "\a\b\033\033\f\n\r\t\v";
	char c = coop_lexer_peek(lexer, 0);
	const char *name = c ? strchr(names, c) : NULL;

	if (digit_of(c, 8) >= 0)
		return (char)lex_number(lexer, 8, 3);
	lexer->at += lexer->at < lexer->size;
	if (c == 'x')
		return (char)lex_number(lexer, 16, 2);
	if (c == 'u' || c == 'U')
		return (char)lex_number(lexer, 16, c == 'u' ? 4 : 8);
	return name ? values[name - names] : c;
}

static void lex_ansi(struct coop_lexer *lexer, struct coop_policy_draft *draft)
{
	draft->begun = true;
	draft->flags |= COOP_WORD_QUOTED;
	while (lexer->at < lexer->size) {
		char c = lexer->text[lexer->at++];

		if (c == '\'')
			return;
		if (c == '\\')
			c = lex_escape(lexer);
		if (c)
			coop_draft_put(lexer, draft, c);
	}
}

void coop_expansion_dollar(struct coop_lexer *lexer, struct coop_policy_draft *draft, bool quoted)
{
	const char *name = lexer->text + lexer->at;
	char c = coop_lexer_peek(lexer, 0);
	size_t size = 0;

	if (c == '(' || c == '{') {
		lexer->at++;
		(c == '(' ? lex_parenthesis : lex_parameter)(lexer, draft, quoted);
		return;
	}
	if (!quoted && c == '\'') {
		lexer->at++;
		lex_ansi(lexer, draft);
		return;
	}
	if (!quoted && c == '"')
		return; /* a translated string is a string */
	if (isalpha((unsigned char)c) || c == '_') {
		while (isalnum((unsigned char)coop_lexer_peek(lexer, size)) ||
		       coop_lexer_peek(lexer, size) == '_')
			size++;
		lexer->at += size;
		put_variable(lexer, draft, name, size, quoted);
		return;
	}
	if (!c || !strchr("?*@#$!-0123456789", c)) {
		coop_draft_put(lexer, draft, '$');
		return;
	}
	coop_draft_unsure(lexer, draft);
	coop_draft_put(lexer, draft, '$');
	coop_draft_put(lexer, draft, c);
	coop_draft_sure(lexer, draft);
	lexer->at++;
}

/* How many bytes from the place on mean nothing but themselves. */
static size_t quoted_size(const struct coop_lexer *lexer, char end)
{
	size_t at = lexer->at;

	while (at < lexer->size && lexer->text[at] != '$' && lexer->text[at] != '`' &&
	       lexer->text[at] != '\\' && lexer->text[at] != end)
		at++;
	return at - lexer->at;
}

void coop_expansion_double(struct coop_lexer *lexer, struct coop_policy_draft *draft, char end)
{
	draft->begun = true;
	while (lexer->at < lexer->size && !lexer->out->too_long) {
		size_t plain = quoted_size(lexer, end);
		if (plain) {
			coop_draft_bytes(lexer, draft, lexer->text + lexer->at, plain);
			lexer->at += plain;
			continue;
		}
		char c = lexer->text[lexer->at++], next = coop_lexer_peek(lexer, 0);

		if (c == end && end) {
			return;
		} else if (c == '\\' && next && strchr("$`\"\\\n", next)) {
			lexer->at++;
			if (next != '\n')
				coop_draft_put(lexer, draft, next);
		} else if (c == '$') {
			coop_expansion_dollar(lexer, draft, true);
		} else if (c == '`') {
			coop_expansion_backquote(lexer, draft, true);
		} else {
			coop_draft_put(lexer, draft, c);
		}
	}
}
