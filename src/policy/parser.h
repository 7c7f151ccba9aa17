/* Reads a shell's text into simple commands. It never refuses: what makes no sense is read as best
 * it can be. */
#ifndef COOP_POLICY_PARSER_H
#define COOP_POLICY_PARSER_H

#include "policy/lexer.h"
#include "policy/words.h"

/* Where a text stands. */
struct coop_parser_place {
	const char *cwd;
	uint32_t parent, word; /* as of struct coop_simple */
	enum coop_via via;
	unsigned depth;
};

/* Adds the commands of `text`. What did not fit is noted in `words`. */
void coop_parser_read(struct coop_words *words, const char *text, size_t size,
		      const struct coop_parser_place *place);

/* For the lexer: commands up to the closing parenthesis, which is taken too. Adds them as standing
 * in the word `word`. */
void coop_parser_inside(struct coop_lexer *lexer, uint32_t word, enum coop_via via);

/* For simple commands: name() body, with the place at the opening parenthesis. False where that is
 * something else. */
bool coop_parser_function(struct coop_lexer *lexer, const char *name, uint32_t command);

#endif
