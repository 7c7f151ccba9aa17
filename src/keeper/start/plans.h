/* The messages that plans are sent in. */
#ifndef COOP_KEEPER_PLANS_H
#define COOP_KEEPER_PLANS_H

#include "base/buf.h"
#include "sandbox/plan/plan.h"

struct coop_process;
struct coop_spawn_command;

/* Appends plan and body. SPAWN: all of it. FILL: what a slot does in advance, the same bytes for
 * every process of a kind; command NULL. GO: the rest. A large body becomes an fd instead,
 * *ret_body_fd (else -1). 0 or -errno. */
int coop_plans_make(const struct coop_process *process, enum coop_plan_kind kind,
		    const struct coop_spawn_command *command, struct coop_buf *ret,
		    int *ret_body_fd);

#endif
