/* What pattern.c makes and search.c uses. */
#ifndef COOP_VIEWS_COMPILED_H
#define COOP_VIEWS_COMPILED_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/views/pattern.h"

#define COOP_PATTERN_REASON 256u

struct coop_pattern {
	pcre2_general_context *memory; /* NULL for a plain text, as is the code */
	pcre2_code *code;
	/* the same, but stops on its way to ask whether to go on: slower. NULL if it is too
	 * large for that */
	pcre2_code *patient;
	char *text; /* a plain text */
	size_t size;
	unsigned groups;   /* the match itself included */
	bool has_newlines; /* CR or LF occur in it, so that a match may begin between them */
};

/* Looks for what is not part of our syntax, though PCRE2 knows it. 0, or -EINVAL with `what` it is
 * and where it stands, from 0. */
int coop_syntax_check(const char *text, size_t size, const char **ret_what, size_t *ret_at);

#endif
