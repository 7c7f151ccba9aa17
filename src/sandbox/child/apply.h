/* The child's half of a spawn: from clone to exec. Everything here is async-signal-safe and uses no
 * heap. */
#ifndef COOP_SANDBOX_APPLY_H
#define COOP_SANDBOX_APPLY_H

#include "sandbox/child/namespaces.h"
#include "sandbox/child/payload.h"
#include "sandbox/plan/plan.h"

/* Carries out the plan in a fresh child, which then is the program, or the first process of its
 * namespace. `body` is the inline body (NULL with COOP_PLAN_BODY_FD). `counts` are what a user
 * namespace of its own may have. `fds` are those of enum coop_plan_fd (-1 where there is none) and
 * then the extra ones, all above 2. Never returns: a failing step is told on the channel, then the
 * child exits. */
_Noreturn void coop_apply(const struct coop_plan *plan, const char *body, const int *fds,
			  const struct coop_filters *filters,
			  const struct coop_user_counts *counts);

#endif
