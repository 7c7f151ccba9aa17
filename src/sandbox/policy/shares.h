/* Shares: how much all processes of an agent may use together, with those of all agents below it,
 * where nobody says otherwise. A number, or so many hundredths of what the machine has; or nothing
 * is held. */
#ifndef COOP_SANDBOX_SHARES_H
#define COOP_SANDBOX_SHARES_H

#include <stdbool.h>
#include <stdint.h>

#include "interface/err.h"

struct coop_sandbox_limits;

enum coop_share_name {
	COOP_SHARE_PRINCIPAL_MEMORY, /* of a principal's first agent, so of all that is its */
	COOP_SHARE_AGENT_MEMORY,     /* of each other agent */
	COOP_SHARE_PRINCIPAL_PIDS,
	COOP_SHARE_AGENT_PIDS,
	COOP_SHARE_COUNT,
};

struct coop_share {
	int64_t amount; /* 0: none is held */
	bool percent;   /* of the machine */
	bool said;      /* by the operator */
};

struct coop_shares {
	struct coop_share of[COOP_SHARE_COUNT];
};

/* What there is to be shared. */
struct coop_machine {
	int64_t memory_bytes, pids;
};

void coop_shares_init(struct coop_shares *shares);

/* One key of [sandbox]: 4G, 50%, none. 0, or the error filled; -ENOENT: no such key. */
int coop_shares_set(struct coop_shares *shares, const char *key, const char *value,
		    struct coop_err *err);

/* Finds out. What the kernel does not tell is 0: nothing is held of it. */
void coop_machine_look(struct coop_machine *ret);

/* Memory and processes of a principal's first agent, or of another, over limits that say nothing of
 * them. */
void coop_shares_lay(const struct coop_shares *shares, const struct coop_machine *machine,
		     bool first, struct coop_sandbox_limits *limits);

#endif
