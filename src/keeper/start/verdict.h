/* The policy's word on a draft, and how it is told: the envelope of a command that was not run. */
#ifndef COOP_KEEPER_VERDICT_H
#define COOP_KEEPER_VERDICT_H

#include "base/buf.h"
#include "base/json/jsonw.h"
#include "policy/policy.h"

struct coop_draft;

/* Asks the policies of the operator and of all agents from the principal's first down to the
 * draft's. 0: it is allowed; else draft->err says why not. */
int coop_verdict_reach(struct coop_draft *draft, struct coop_verdict *ret);

/* Writes the members of the envelope. */
void coop_verdict_envelope(struct coop_draft *draft, const struct coop_verdict *verdict,
			   struct coop_jsonw *w);

/* The same as text without braces, for the details of an error. Empty without memory. */
void coop_verdict_details(struct coop_draft *draft, const struct coop_verdict *verdict,
			  struct coop_buf *ret);

#endif
