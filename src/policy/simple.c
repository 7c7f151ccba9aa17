#include "policy/simple.h"

#include <string.h>

#include "policy/parser.h"
#include "policy/paths.h"
#include "policy/words.h"

uint32_t coop_simple_begin(struct coop_lexer *lexer)
{
	uint32_t index = coop_words_add_command(lexer->out);

	if (index == COOP_SIMPLE_NONE)
		return index;
	struct coop_simple *command = &lexer->out->commands[index];
	command->parent = lexer->parent;
	command->word = lexer->word;
	command->via = lexer->via;
	command->shell = true;
	command->cwd = lexer->cwd;
	lexer->command = index;
	return index;
}

/* << and <<-: the body comes after the line. */
static void announce_here(struct coop_lexer *lexer, size_t pending, bool tabs)
{
	if (pending >= lexer->out->pending_count)
		return;
	struct coop_word *word = &lexer->out->pending[pending];
	if (lexer->here_count == COOP_LEXER_HERE_MAX) {
		lexer->out->too_long = true;
		return;
	}
	lexer->here[lexer->here_count++] =
		(struct coop_lexer_here){.end = word->text,
					 .tabs = tabs,
					 .plain = word->flags & COOP_WORD_QUOTED,
					 .id = word->id,
					 .command = lexer->command};
	word->flags &= (uint8_t)~COOP_WORD_QUOTED;
}

/* A redirection at the place, with or without a number before it. */
static bool parse_redirect(struct coop_lexer *lexer)
{
	size_t digits = 0, pending = lexer->out->pending_count;

	while (coop_lexer_peek(lexer, digits) >= '0' && coop_lexer_peek(lexer, digits) <= '9')
		digits++;
	bool both = !digits && coop_lexer_peek(lexer, 0) == '&' && coop_lexer_peek(lexer, 1) == '>';
	char c = coop_lexer_peek(lexer, digits + both);
	if ((c != '<' && c != '>') || (!both && !digits && coop_lexer_peek(lexer, 1) == '('))
		return false;
	lexer->at += digits + both + 1;
	char next = coop_lexer_peek(lexer, 0), third = coop_lexer_peek(lexer, 1);
	enum coop_role role = c == '<' ? COOP_ROLE_READ : COOP_ROLE_WRITE;
	bool here = c == '<' && next == '<', text = here && third == '<';
	if (here) {
		role = COOP_ROLE_HERE;
		lexer->at += text || third == '-' ? 2 : 1;
	} else if (next == '>' || next == '|') {
		role = COOP_ROLE_WRITE; /* >> >| <> */
		lexer->at++;
	} else if (next == '&') {
		lexer->at++;
		/* 2>&1, 2>&-: no file. */
		char target = coop_lexer_peek(lexer, 0);
		if ((target >= '0' && target <= '9') || target == '-') {
			while (!coop_lexer_stopped(lexer) && (coop_lexer_peek(lexer, 0) == '-' ||
							      (coop_lexer_peek(lexer, 0) >= '0' &&
							       coop_lexer_peek(lexer, 0) <= '9')))
				lexer->at++;
			return true;
		}
	}
	coop_lexer_blanks(lexer);
	(void)coop_lexer_word(lexer, role);
	if (here && !text)
		announce_here(lexer, pending, third == '-');
	return true;
}

/* name=(..): the words in it are no arguments. */
static void skip_array(struct coop_lexer *lexer)
{
	size_t pending = lexer->out->pending_count;

	lexer->at++;
	while (!coop_lexer_stopped(lexer)) {
		coop_lexer_lines(lexer);
		if (coop_lexer_peek(lexer, 0) == ')') {
			lexer->at++;
			break;
		}
		if (!coop_lexer_word(lexer, COOP_ROLE_ARGUMENT))
			lexer->at += !coop_lexer_stopped(lexer);
	}
	lexer->out->pending_count = pending;
}

/* cd changes where the rest of the line runs. */
static void follow_cd(struct coop_lexer *lexer, const struct coop_word *words, size_t count)
{
	struct coop_path path;
	size_t i = 1;

	while (i < count && words[i].text[0] == '-' && words[i].text[1] &&
	       strcmp(words[i].text, "--") != 0)
		i++;
	i += i < count && !strcmp(words[i].text, "--");
	const char *to = i < count ? words[i].text : lexer->out->home;
	bool known = to && strcmp(to, "-") != 0 &&
		     (i >= count || !(words[i].flags & (COOP_WORD_COMPUTED | COOP_WORD_GLOB))) &&
		     coop_path_make(&path, lexer->cwd, to);
	lexer->cwd = known ? coop_words_text(lexer->out, path.text, strlen(path.text)) : NULL;
}

/* What a finished command means for those after it. */
static void follow(struct coop_lexer *lexer, const struct coop_simple *command)
{
	const struct coop_word *words = coop_words_of(lexer->out, command);
	size_t count = command->arguments, from = 0;

	if (!count)
		return;
	while (count > 1 && (!strcmp(words->text, "builtin") || !strcmp(words->text, "command"))) {
		words++;
		count--;
	}
	if (!strcmp(words->text, "cd") || !strcmp(words->text, "pushd")) {
		follow_cd(lexer, words, count);
	} else if (!strcmp(words->text, "popd")) {
		lexer->cwd = NULL;
	} else if (!strcmp(words->text, "read")) {
		for (size_t i = 1; i < count; i++)
			coop_words_assign(lexer->out, words[i].text, strlen(words[i].text), NULL);
	}
	from = !strcmp(words->text, "export") || !strcmp(words->text, "local") ||
	       !strcmp(words->text, "declare") || !strcmp(words->text, "readonly");
	for (size_t i = from; i < count; i++) {
		if (!coop_words_assignment(words[i].text) && words[i].text[0] != '-')
			return; /* X=1 program: not for later */
	}
	for (size_t i = from; i < count; i++) {
		size_t size = coop_words_assignment(words[i].text);
		bool known = words[i].text[size] == '=' && !(words[i].flags & COOP_WORD_COMPUTED);
		if (size)
			coop_words_assign(lexer->out, words[i].text, size,
					  known ? words[i].text + size + 1 : NULL);
	}
}

/* [[ .. ]]: < > ( ) && || are part of it. */
static void parse_condition(struct coop_lexer *lexer)
{
	while (!coop_lexer_stopped(lexer)) {
		coop_lexer_lines(lexer);
		bool last = coop_lexer_at(lexer, "]]");
		if (!coop_lexer_word(lexer, COOP_ROLE_ARGUMENT))
			lexer->at += !coop_lexer_stopped(lexer);
		if (last)
			return;
	}
}

static void parse_arguments(struct coop_lexer *lexer, uint32_t command, size_t from)
{
	struct coop_words *out = lexer->out;
	bool condition = coop_lexer_at(lexer, "[[");

	while (!coop_lexer_stopped(lexer)) {
		coop_lexer_blanks(lexer);
		if (condition) {
			condition = false;
			parse_condition(lexer);
			continue;
		}
		if (parse_redirect(lexer))
			continue;
		size_t before = out->pending_count;
		if (!coop_lexer_word(lexer, COOP_ROLE_ARGUMENT))
			return;
		if (out->pending_count != before + 1)
			continue;
		const char *text = out->pending[before].text;
		size_t size = strlen(text);
		if (coop_lexer_peek(lexer, 0) == '(' && size && text[size - 1] == '=')
			skip_array(lexer);
		coop_lexer_blanks(lexer);
		if (before == from && coop_lexer_peek(lexer, 0) == '(' &&
		    coop_parser_function(lexer, text, command)) {
			out->pending_count = from;
			return;
		}
	}
}

void coop_simple_read(struct coop_lexer *lexer)
{
	size_t from = lexer->out->pending_count;
	uint32_t command = coop_simple_begin(lexer);

	if (command == COOP_SIMPLE_NONE)
		return;
	parse_arguments(lexer, command, from);
	/* A function's body has made other commands current. */
	lexer->command = command;
	coop_words_finish(lexer->out, command, from);
	follow(lexer, &lexer->out->commands[command]);
}

void coop_simple_trailing(struct coop_lexer *lexer)
{
	size_t from = lexer->out->pending_count;
	struct coop_lexer ahead = *lexer;

	coop_lexer_blanks(&ahead);
	char c = coop_lexer_peek(&ahead, 0), next = coop_lexer_peek(&ahead, 1);
	if (c != '<' && c != '>' && !(c == '&' && next == '>') &&
	    !(c >= '0' && c <= '9' && (next == '<' || next == '>')))
		return;
	uint32_t command = coop_simple_begin(lexer);
	if (command == COOP_SIMPLE_NONE)
		return;
	do
		coop_lexer_blanks(lexer);
	while (!coop_lexer_stopped(lexer) && parse_redirect(lexer));
	coop_words_finish(lexer->out, command, from);
}
