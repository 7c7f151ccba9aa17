/* The limits of one folder of one hierarchy. For the cgroup modules only. */
#ifndef COOP_SANDBOX_CGROUP_LIMIT_H
#define COOP_SANDBOX_CGROUP_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "sandbox/cgroup/controller.h"
#include "sandbox/policy/policy.h"

/* The limit that the controller holds; 0: none is set, or (freezer) there is no such thing. */
int64_t coop_cglimit_of(const struct coop_sandbox_limits *limits, enum coop_controller controller);

/* Writes it; 0 takes it away. 0 or -errno. */
int coop_cglimit_write(int version, enum coop_controller controller, const char *folder,
		       int64_t limit);

/* Whether one is set in that folder. */
bool coop_cglimit_is_set(int version, enum coop_controller controller, const char *folder);

#endif
