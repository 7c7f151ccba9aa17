/* The end of the audit's chain as the loop knows it: lines are made here and put into the backlog,
 * from where the helper thread carries them to the files. Loop's thread. */
#ifndef COOP_RECORDS_AUDIT_CHAIN_H
#define COOP_RECORDS_AUDIT_CHAIN_H

#include <stdint.h>

#include "base/buf.h"
#include "records/audit.h"
#include "records/backlog.h"

/* How much of the backlog a line may leave to others. While the disk takes nothing, refusals must
 * not keep starts from being written, nor starts the ends of what runs. */
enum coop_audit_kind { COOP_AUDIT_REFUSAL, COOP_AUDIT_START, COOP_AUDIT_END };

struct coop_audit_chain {
	struct coop_backlog *backlog; /* NULL: nothing is audited */
	uint64_t last;
	char last_hash[COOP_HASH_TEXT];
	struct coop_buf line;
};

/* Goes on behind the anchor, with a backlog that has no lines. */
void coop_audit_chain_begin(struct coop_audit_chain *chain, struct coop_backlog *backlog,
			    const struct coop_audit_anchor *anchor);
void coop_audit_chain_clear(struct coop_audit_chain *chain);

/* Adds a line; `members` as for coop_audit_append(). 0 with its number, or -errno (-ENOBUFS: the
 * disk has not taken earlier ones): then the chain is as before. */
int coop_audit_chain_add(struct coop_audit_chain *chain, enum coop_audit_kind kind, int64_t at_ms,
			 const char *members, uint64_t *ret_seq);

#endif
