/* A word that is being read. */
#ifndef COOP_POLICY_DRAFT_H
#define COOP_POLICY_DRAFT_H

#include "policy/lexer.h"

#define COOP_DRAFT_PARTS 256u

/* Its bytes lie at the end of scratch. */
struct coop_policy_draft {
	size_t start; /* in scratch */
	uint32_t id;
	uint8_t flags, role;
	bool begun, unsure; /* unsure: some of what was put is computed, from `head` to `tail` */
	size_t head, tail;  /* in scratch */
	/* Offsets of one unquoted {a,b}: the brace, the commas, the closing brace. */
	size_t parts[COOP_DRAFT_PARTS];
	unsigned part_count;
	bool braces_closed;
};

void coop_draft_init(struct coop_lexer *lexer, struct coop_policy_draft *draft, uint32_t id);
void coop_draft_put(struct coop_lexer *lexer, struct coop_policy_draft *draft, char byte);
void coop_draft_bytes(struct coop_lexer *lexer, struct coop_policy_draft *draft, const char *bytes,
		      size_t size);
void coop_draft_text(struct coop_lexer *lexer, struct coop_policy_draft *draft, const char *text);

/* What is put between these two is computed. */
void coop_draft_unsure(struct coop_lexer *lexer, struct coop_policy_draft *draft);
void coop_draft_sure(struct coop_lexer *lexer, struct coop_policy_draft *draft);

/* What a variable or a command gave. Unquoted it is split at blanks, and its pattern characters
 * count. */
void coop_draft_value(struct coop_lexer *lexer, struct coop_policy_draft *draft, const char *value,
		      bool quoted);

/* Notes an unquoted { , or } that is about to be put. */
void coop_draft_brace(struct coop_lexer *lexer, struct coop_policy_draft *draft, char byte);

/* Makes it a pending word, or several; the draft is empty afterwards. */
void coop_draft_finish(struct coop_lexer *lexer, struct coop_policy_draft *draft);

#endif
