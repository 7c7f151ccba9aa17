/* Limits that the kernel holds for each process by itself. In the child: only system calls. */
#ifndef COOP_SANDBOX_RLIMITS_H
#define COOP_SANDBOX_RLIMITS_H

#include "sandbox/plan/plan.h"

/* 0 or -errno. */
int coop_rlimits_set(const struct coop_plan_limit *limits, uint32_t count);

/* Marks this process and all that it starts as the record's, see plan.h. */
void coop_rlimits_mark(uint64_t mark);

#endif
