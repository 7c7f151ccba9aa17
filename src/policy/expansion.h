/* $.., `..` and what stands in double quotes. */
#ifndef COOP_POLICY_EXPANSION_H
#define COOP_POLICY_EXPANSION_H

#include "policy/draft.h"

/* The place is after the dollar sign. */
void coop_expansion_dollar(struct coop_lexer *lexer, struct coop_policy_draft *draft, bool quoted);

/* The place is after the first backquote. */
void coop_expansion_backquote(struct coop_lexer *lexer, struct coop_policy_draft *draft,
			      bool quoted);

/* Up to `end` (0: to the end of the text), which is taken. */
void coop_expansion_double(struct coop_lexer *lexer, struct coop_policy_draft *draft, char end);

/* Bytes that the shell would expand as inside double quotes, for the commands in them; the text
 * itself is not kept. */
void coop_expansion_scan(struct coop_lexer *lexer, struct coop_policy_draft *draft,
			 const char *text, size_t size);

/* Takes (( .. )) where that stands here, read as arithmetic; the place is after the first
 * parenthesis. */
bool coop_expansion_arithmetic(struct coop_lexer *lexer);

#endif
