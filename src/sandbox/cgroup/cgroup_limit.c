#include "sandbox/cgroup/cgroup_limit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sandbox/cgroup/cgroup_file.h"

/* The kernel takes no slice below a millisecond: tiny shares get a longer period. */
#define PERIOD_US 100000
#define LONG_PERIOD_US 1000000
#define SLICE_MIN_US 1000

int64_t coop_cglimit_of(const struct coop_sandbox_limits *limits, enum coop_controller controller)
{
	switch (controller) {
	case COOP_CG_MEMORY:
		return limits->memory_bytes;
	case COOP_CG_CPU:
		return limits->cpu_quota_millis;
	case COOP_CG_PIDS:
		return limits->max_pids;
	case COOP_CG_FREEZER:
	case COOP_CG_COUNT:
		break;
	}
	return 0;
}

static int write_max(const char *folder, const char *name, int64_t limit)
{
	return limit > 0 ? coop_cgfile_write_number(folder, name, limit)
			 : coop_cgfile_write(folder, name, "max");
}

static int memory_v2(const char *folder, int64_t limit)
{
	/* What is swapped out would not count. Without swap in the kernel there is no such file. */
	int r = coop_cgfile_write(folder, "memory.swap.max", limit > 0 ? "0" : "max");

	if (r < 0 && r != -ENOENT)
		return r;
	return write_max(folder, "memory.max", limit);
}

/* The limit of memory and that of memory with swap hold each other: the first never above the
 * second. So the way up and the way down need different orders, and which one it is need not be
 * known if the first is tried twice. */
static int memory_v1(const char *folder, int64_t limit)
{
	int64_t value = limit > 0 ? limit : -1;
	int first = coop_cgfile_write_number(folder, "memory.limit_in_bytes", value);

	if (first < 0 && first != -EINVAL)
		return first;
	int r = coop_cgfile_write_number(folder, "memory.memsw.limit_in_bytes", value);
	if (r < 0 && r != -ENOENT)
		return r;
	return first < 0 ? coop_cgfile_write_number(folder, "memory.limit_in_bytes", value) : 0;
}

static void cpu_slice(int64_t millis, int64_t *ret_quota, int64_t *ret_period)
{
	*ret_period = millis * (PERIOD_US / 1000) < SLICE_MIN_US ? LONG_PERIOD_US : PERIOD_US;
	/* 2^32 thousandths are more cores than there are, and fit. */
	if (millis > UINT32_MAX)
		millis = UINT32_MAX;
	*ret_quota = millis * (*ret_period / 1000);
}

static int cpu_v2(const char *folder, int64_t millis)
{
	int64_t quota, period;
	char text[64];

	if (millis <= 0)
		return coop_cgfile_write(folder, "cpu.max", "max");
	cpu_slice(millis, &quota, &period);
	(void)snprintf(text, sizeof text, "%" PRId64 " %" PRId64, quota, period);
	return coop_cgfile_write(folder, "cpu.max", text);
}

static int cpu_v1_plain(const char *folder, int64_t millis)
{
	int64_t quota, period;
	/* Without a slice any period is right; with one, the two would be checked against each
	 * other half-way. */
	int r = coop_cgfile_write_number(folder, "cpu.cfs_quota_us", -1);

	if (r < 0 || millis <= 0)
		return r;
	cpu_slice(millis, &quota, &period);
	r = coop_cgfile_write_number(folder, "cpu.cfs_period_us", period);
	return r < 0 ? r : coop_cgfile_write_number(folder, "cpu.cfs_quota_us", quota);
}

/* Thousandths of a core; 0: not limited. */
static int64_t cpu_v1_read(const char *folder)
{
	char quota[32], period[32];

	if (coop_cgfile_read(folder, "cpu.cfs_quota_us", quota, sizeof quota) < 0 ||
	    coop_cgfile_read(folder, "cpu.cfs_period_us", period, sizeof period) < 0)
		return 0;
	int64_t slice = strtoll(quota, NULL, 10), length = strtoll(period, NULL, 10);
	return slice > 0 && length > 0 ? slice * 1000 / length : 0;
}

static int lower_below(const char *path, void *context)
{
	const int64_t *millis = context;
	int r = coop_cgfile_folders(path, lower_below, context);

	if (r < 0)
		return r;
	return cpu_v1_read(path) > *millis ? cpu_v1_plain(path, *millis) : 0;
}

/* The share of the nearest group above that has one; 0: none has. */
static int64_t cpu_v1_above(const char *folder)
{
	char path[COOP_CG_PATH_MAX];
	int64_t found = 0;

	(void)snprintf(path, sizeof path, "%s", folder);
	for (char *slash; found == 0 && (slash = strrchr(path, '/')) > path;) {
		*slash = 0;
		found = cpu_v1_read(path);
	}
	return found;
}

/* Version 1 refuses a share that is smaller than one below it: those go first. And one that is
 * larger than the share above, which holds anyway: then it is left to that. */
static int cpu_v1(const char *folder, int64_t millis)
{
	int64_t before = cpu_v1_read(folder);
	int r = cpu_v1_plain(folder, millis);

	if (r == -EINVAL && coop_cgfile_folders(folder, lower_below, &millis) == 0)
		r = cpu_v1_plain(folder, millis);
	int64_t above = r == -EINVAL ? cpu_v1_above(folder) : 0;
	if (above > 0 && above < millis)
		return coop_cgfile_write_number(folder, "cpu.cfs_quota_us", -1);
	if (r < 0 && before > 0)
		(void)cpu_v1_plain(folder, before);
	return r;
}

int coop_cglimit_write(int version, enum coop_controller controller, const char *folder,
		       int64_t limit)
{
	switch (controller) {
	case COOP_CG_MEMORY:
		return version == 2 ? memory_v2(folder, limit) : memory_v1(folder, limit);
	case COOP_CG_CPU:
		return version == 2 ? cpu_v2(folder, limit) : cpu_v1(folder, limit);
	case COOP_CG_PIDS:
		return write_max(folder, "pids.max", limit);
	case COOP_CG_FREEZER:
	case COOP_CG_COUNT:
		break;
	}
	return 0;
}

bool coop_cglimit_is_set(int version, enum coop_controller controller, const char *folder)
{
	static const char *const names[] = {
		[COOP_CG_MEMORY] = "memory.max",
		[COOP_CG_CPU] = "cpu.max",
		[COOP_CG_PIDS] = "pids.max",
	};
	char text[64];

	if (controller >= COOP_CG_FREEZER)
		return false;
	if (version == 1 && controller == COOP_CG_CPU)
		return cpu_v1_read(folder) > 0;
	if (version == 1 && controller == COOP_CG_MEMORY) {
		/* "No limit" is a number here: the largest multiple of a page. */
		return coop_cgfile_read(folder, "memory.limit_in_bytes", text, sizeof text) > 0 &&
		       strtoull(text, NULL, 10) < (UINT64_C(1) << 62);
	}
	return coop_cgfile_read(folder, names[controller], text, sizeof text) > 0 && text[0] != 'm';
}
