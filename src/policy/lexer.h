/* Reads single words of a shell's text: quotes, escapes, expansions. */
#ifndef COOP_POLICY_LEXER_H
#define COOP_POLICY_LEXER_H

#include "policy/words.h"

#define COOP_LEXER_HERE_MAX 8u

/* A here-document whose body has not come yet. */
struct coop_lexer_here {
	const char *end; /* the line that ends it */
	bool tabs;       /* <<- */
	bool plain;      /* a quoted end: nothing in it is expanded */
	uint32_t id;     /* the word that gets the body */
	uint32_t command;
};

/* A place in a text. Copied for what stands inside parentheses. */
struct coop_lexer {
	struct coop_words *out;
	const char *text;
	size_t at, size;
	const char *cwd;  /* NULL: not known */
	uint32_t command; /* the one whose words are being read */
	uint32_t parent, word;
	uint8_t via;
	unsigned depth, groups; /* groups: open { ( if … of this text */
	bool inside;            /* ends at a closing parenthesis */
	struct coop_lexer_here here[COOP_LEXER_HERE_MAX];
	size_t here_count;
};

/* The byte `ahead` of the place; 0 past the end. */
static inline char coop_lexer_peek(const struct coop_lexer *lexer, size_t ahead)
{
	return ahead < lexer->size - lexer->at ? lexer->text[lexer->at + ahead] : '\0';
}

/* Blanks, continued lines and comments. */
void coop_lexer_blanks(struct coop_lexer *lexer);

/* Reads a word in `role`; it becomes pending, or several do (braces and unquoted variables can give
 * more than one), or none. False where no word stands here. */
bool coop_lexer_word(struct coop_lexer *lexer, enum coop_role role);

/* At the end, or where the reading has no room left. */
bool coop_lexer_stopped(const struct coop_lexer *lexer);

/* Whether exactly this unquoted word stands here; take moves past it. */
bool coop_lexer_at(const struct coop_lexer *lexer, const char *keyword);
bool coop_lexer_take(struct coop_lexer *lexer, const char *keyword);

/* Blanks and ends of lines, with the here-documents that follow them. */
void coop_lexer_lines(struct coop_lexer *lexer);

#endif
