#include "sandbox/child/rlimits.h"

#include <errno.h>
#include <sys/resource.h>

/* Where the hard limit is too low it goes without, and is known by its session alone. */
void coop_rlimits_mark(uint64_t mark)
{
	struct rlimit limit;

	if (!mark || getrlimit(RLIMIT_LOCKS, &limit) < 0)
		return;
	limit.rlim_cur = mark;
	(void)setrlimit(RLIMIT_LOCKS, &limit);
}

/* A limit can be lowered by anybody; one that stands lower already stays. */
int coop_rlimits_set(const struct coop_plan_limit *limits, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		const struct coop_plan_limit *wanted = &limits[i];
		struct rlimit now, limit = {.rlim_cur = wanted->soft, .rlim_max = wanted->hard};
		if (getrlimit((__rlimit_resource_t)wanted->resource, &now) < 0)
			return -errno;
		if (limit.rlim_max > now.rlim_max)
			limit.rlim_max = now.rlim_max;
		if (limit.rlim_cur > limit.rlim_max)
			limit.rlim_cur = limit.rlim_max;
		if (setrlimit((__rlimit_resource_t)wanted->resource, &limit) < 0)
			return -errno;
	}
	return 0;
}
