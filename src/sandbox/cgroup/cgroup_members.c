/* What is done with those who are in a group, and what the kernel tells of them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sandbox/cgroup/cgroup.h"
#include "sandbox/cgroup/cgroup_file.h"
#include "sandbox/cgroup/cgroup_folder.h"
#include "sandbox/cgroup/cgroup_unified.h"

/* A process in the middle of a system call that cannot be interrupted stops when that ends. */
#define FREEZE_MS 5000
#define FREEZE_LOOK_MS 20

int coop_cgroup_doors(const struct coop_cgroups *groups, const struct coop_cgroup *group,
		      int ret_fds[COOP_CG_COUNT])
{
	int count = 0;

	for (unsigned i = 0; i < COOP_CG_COUNT; i++) {
		char folder[COOP_CG_PATH_MAX], procs[COOP_CG_PATH_MAX];
		if (groups->version[i] != 1 || coop_cgroup_folder(groups, group, i, folder) < 0)
			continue;
		int r = coop_cgfile_join(folder, "cgroup.procs", procs, sizeof procs);
		int fd = r < 0 ? -1 : open(procs, O_WRONLY | O_CLOEXEC);
		if (fd < 0) {
			r = r < 0 ? r : -errno;
			while (count > 0)
				(void)close(ret_fds[--count]);
			return r;
		}
		ret_fds[count++] = fd;
	}
	return count;
}

int coop_cgroup_park(const struct coop_cgroups *groups, const struct coop_cgroup *group,
		     int ret_fds[COOP_CG_COUNT + 1])
{
	char folder[COOP_CG_PATH_MAX], procs[COOP_CG_PATH_MAX];
	int count = coop_cgroup_doors(groups, group, ret_fds);

	if (count < 0 || coop_cgroup_unified(groups, group, folder) < 0)
		return count;
	(void)coop_cgfile_write(folder, "memory.oom.group", "0");
	int r = coop_cgfile_join(folder, "cgroup.procs", procs, sizeof procs);
	int fd = r < 0 ? -1 : open(procs, O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		ret_fds[count++] = fd;
		return count;
	}
	r = r < 0 ? r : -errno;
	while (count > 0)
		(void)close(ret_fds[--count]);
	return r;
}

int coop_cgroup_kill(const struct coop_cgroups *groups, const struct coop_cgroup *group)
{
	char folder[COOP_CG_PATH_MAX];
	int r = coop_cgroup_unified(groups, group, folder);

	if (r == 0)
		r = coop_cgfile_write(folder, "cgroup.kill", "1");
	if (groups->version[COOP_CG_FREEZER] == 1 &&
	    coop_cgroup_folder(groups, group, COOP_CG_FREEZER, folder) == 0)
		(void)coop_cgfile_write(folder, "freezer.state", "THAWED");
	/* The file came with 5.14. */
	return r == -ENOENT ? -ENOTSUP : r;
}

int coop_cgroup_move(const struct coop_cgroups *groups, const struct coop_cgroup *group, pid_t pid)
{
	char folder[COOP_CG_PATH_MAX];
	int r = coop_cgroup_folder(groups, group, COOP_CG_FREEZER, folder);

	return r < 0 ? r : coop_cgfile_write_number(folder, "cgroup.procs", pid);
}

static bool is_frozen(const char *folder, int version)
{
	char text[256];

	if (version == 2)
		return coop_cgfile_read(folder, "cgroup.events", text, sizeof text) > 0 &&
		       coop_cgfile_number(text, "frozen") == 1;
	return coop_cgfile_read(folder, "freezer.state", text, sizeof text) > 0 &&
	       !strcmp(text, "FROZEN\n");
}

static int write_state(const char *folder, int version, bool freeze)
{
	if (version == 2)
		return coop_cgfile_write(folder, "cgroup.freeze", freeze ? "1" : "0");
	return coop_cgfile_write(folder, "freezer.state", freeze ? "FROZEN" : "THAWED");
}

/* Somebody let go meanwhile what is to be frozen, as a kill does. */
static bool is_thawed(const char *folder, int version)
{
	char text[64];
	const char *file = version == 2 ? "cgroup.freeze" : "freezer.self_freezing";

	return coop_cgfile_read(folder, file, text, sizeof text) > 0 && text[0] == '0';
}

int coop_cgroup_freeze(const struct coop_cgroups *groups, const struct coop_cgroup *group,
		       bool freeze)
{
	int version = groups->version[COOP_CG_FREEZER];
	char folder[COOP_CG_PATH_MAX];
	int r = coop_cgroup_folder(groups, group, COOP_CG_FREEZER, folder);

	if (r == 0)
		r = write_state(folder, version, freeze);
	if (r < 0 || !freeze)
		return r;
	/* An empty group is frozen at once, as one whose processes all sleep nearly is. */
	for (int waited = 0; !is_frozen(folder, version); waited += FREEZE_LOOK_MS) {
		if (is_thawed(folder, version))
			return -ECANCELED;
		if (waited >= FREEZE_MS) {
			(void)write_state(folder, version, false);
			return -EBUSY;
		}
		(void)poll(NULL, 0, waited ? FREEZE_LOOK_MS : 1);
		/* Version 1 tells each of them once. One that was about to wait for its vfork
		 * did not hear it, and the child that it waits for has stopped. */
		if (version == 1 && !is_thawed(folder, version))
			(void)write_state(folder, version, true);
	}
	return 0;
}

/* One number of one file; 0 where it is not told. */
static uint64_t number(const char *folder, const char *file, const char *key)
{
	char text[1024];

	return coop_cgfile_read(folder, file, text, sizeof text) > 0 ? coop_cgfile_number(text, key)
								     : 0;
}

static void memory_facts(int version, const char *folder, struct coop_cgroup_facts *facts)
{
	if (version == 1) {
		facts->oom_kills = number(folder, "memory.oom_control", "oom_kill");
		facts->memory_peak = number(folder, "memory.max_usage_in_bytes", NULL);
		facts->memory_now = number(folder, "memory.usage_in_bytes", NULL);
		return;
	}
	facts->oom_kills = number(folder, "memory.events", "oom_kill");
	facts->memory_peak = number(folder, "memory.peak", NULL);
	facts->memory_now = number(folder, "memory.current", NULL);
	if (facts->memory_peak < facts->memory_now)
		facts->memory_peak = facts->memory_now;
}

void coop_cgroup_facts(const struct coop_cgroups *groups, const struct coop_cgroup *group,
		       struct coop_cgroup_facts *ret)
{
	char folder[COOP_CG_PATH_MAX];

	*ret = (struct coop_cgroup_facts){0};
	if (coop_cgroup_folder(groups, group, COOP_CG_MEMORY, folder) == 0)
		memory_facts(groups->version[COOP_CG_MEMORY], folder, ret);
	if (coop_cgroup_folder(groups, group, COOP_CG_PIDS, folder) == 0)
		ret->pids_refused = number(folder, "pids.events", "max");
	if (coop_cgroup_folder(groups, group, COOP_CG_CPU, folder) == 0)
		ret->cpu_throttled_ns =
			groups->version[COOP_CG_CPU] == 1
				? number(folder, "cpu.stat", "throttled_time")
				: number(folder, "cpu.stat", "throttled_usec") * 1000;
}

static int count_one(const char *path, void *context)
{
	uint32_t *count = context;
	const char *name = strrchr(path, '/') + 1;

	if (strcmp(name, "launcher") != 0 && strcmp(name, COOP_CGUNIFIED_KEEPER) != 0)
		(*count)++;
	return coop_cgfile_folders(path, count_one, context);
}

uint32_t coop_cgroups_count(const struct coop_cgroups *groups)
{
	uint32_t count = 0;

	if (groups->unified)
		(void)coop_cgfile_folders(groups->unified, count_one, &count);
	for (unsigned i = 0; i < COOP_CG_COUNT; i++) {
		if (groups->version[i] == 1)
			(void)coop_cgfile_folders(groups->base[i], count_one, &count);
	}
	return count;
}
