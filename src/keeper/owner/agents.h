/* All agents of the keeper, with what their modules count: between the files of the rooms owner/
 * and agents/. */
#ifndef COOP_KEEPER_AGENTS_H
#define COOP_KEEPER_AGENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/list.h"
#include "base/map.h"

struct coop_agent;
struct coop_keeper;

struct coop_agents {
	/* An agent leaves its tree, and once more when nobody holds it any more. */
	void (*on_leave)(struct coop_agent *agent);
	struct coop_link principals;
	struct coop_agent *main; /* of the user whose keeper it is */
	unsigned count;
	unsigned session_count;
	uint64_t last_session, session_end; /* numbers that this keeper may give; 0: no end */
	struct coop_map tokens;             /* by id */
	uv_timer_t expiry;                  /* of the agent that ends next */
	struct coop_link left_out;          /* agents that could not be read: left_out.h */
	struct coop_link changes;           /* that wait for their turn with the disk: change.h */
	bool changing;                      /* one of them has its turn */
};

/* NULL without memory. */
struct coop_agents *coop_agents_new(struct coop_keeper *keeper,
				    void (*on_leave)(struct coop_agent *agent));

#endif
