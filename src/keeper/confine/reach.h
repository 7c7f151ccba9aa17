/* What the keeper looks at on an agent's behalf when that names a path: what the agent may read.
 * Elsewhere nothing is looked at, so that no refusal, and no success, tells what is there. */
#ifndef COOP_KEEPER_REACH_H
#define COOP_KEEPER_REACH_H

#include "keeper/conf/homes.h"
#include "sandbox/layout/path_walk.h"

struct coop_agent;

struct coop_reach {
	struct coop_lookable seen;
	const struct coop_agent *agent;
	struct coop_homes homes; /* credentials in them are hidden */
};

/* NULL for the user himself, and for an agent whose commands need not be confined: they may look
 * anywhere. Else &ret->seen, good as long as the agent's settings stay as they are. */
const struct coop_lookable *coop_reach_of(const struct coop_agent *agent, struct coop_reach *ret);

#endif
