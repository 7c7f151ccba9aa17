/* Reads simple commands: words, redirections, and what they mean for the rest of the line. */
#ifndef COOP_POLICY_SIMPLE_H
#define COOP_POLICY_SIMPLE_H

#include "policy/lexer.h"

/* A new command at the place, without words; it becomes the lexer's. COOP_SIMPLE_NONE: no room. */
uint32_t coop_simple_begin(struct coop_lexer *lexer);

/* One whole command; also a function's definition, which begins like one. */
void coop_simple_read(struct coop_lexer *lexer);

/* Redirections after ) } fi done esac: a command of their own, so that they are seen. */
void coop_simple_trailing(struct coop_lexer *lexer);

#endif
