#include "records/audit_chain.h"

#include <errno.h>
#include <string.h>

#include "records/audit_line.h"

void coop_audit_chain_begin(struct coop_audit_chain *chain, struct coop_backlog *backlog,
			    const struct coop_audit_anchor *anchor)
{
	*chain = (struct coop_audit_chain){.backlog = backlog, .last = anchor->last};
	memcpy(chain->last_hash, anchor->last_hash, sizeof chain->last_hash);
}

void coop_audit_chain_clear(struct coop_audit_chain *chain)
{
	coop_buf_clear(&chain->line);
	chain->backlog = NULL;
}

int coop_audit_chain_add(struct coop_audit_chain *chain, enum coop_audit_kind kind, int64_t at_ms,
			 const char *members, uint64_t *ret_seq)
{
	static const size_t spare[] = {
		[COOP_AUDIT_REFUSAL] = COOP_BACKLOG_BYTES / 2,
		[COOP_AUDIT_START] = COOP_BACKLOG_BYTES / 4,
		[COOP_AUDIT_END] = 0,
	};
	char hash[COOP_HASH_TEXT];
	uint64_t seq = chain->last + 1;
	int r = coop_audit_line_write(&chain->line, seq, at_ms, members, chain->last_hash, hash);
	size_t size = coop_buf_size(&chain->line);

	if (r == 0 && size - 1 > COOP_AUDIT_LINE_MAX)
		r = -EMSGSIZE;
	if (r == 0)
		r = coop_backlog_put(chain->backlog, COOP_LANE_AUDIT, seq,
				     coop_buf_front(&chain->line), size, spare[kind]);
	coop_buf_consume(&chain->line, size);
	if (r < 0)
		return r;
	chain->last = seq;
	memcpy(chain->last_hash, hash, sizeof hash);
	*ret_seq = seq;
	return 0;
}
