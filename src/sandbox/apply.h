/* The child's half of a spawn: from clone to exec. Everything here is async-signal-safe and uses no heap. */
#ifndef COOP_SANDBOX_APPLY_H
#define COOP_SANDBOX_APPLY_H

#include "sandbox/plan.h"

/* Carries out the plan in a fresh child and executes the program. `body` is the inline body (NULL with COOP_PLAN_BODY_FD).
 * `fds` are those of enum coop_plan_fd, all above 2. Never returns: a failing step is told on the status pipe, then the child
 * exits with 126 (127 where the program is missing). */
_Noreturn void coop_apply(const struct coop_plan *plan, const char *body, const int *fds);

#endif
