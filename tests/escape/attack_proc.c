/* /proc, /sys, devices, and memory that the host shares. Files that steer the kernel are opened
 * only, never written. */
#include "attack.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static const char *const groups[] = {
	"/sys/fs/cgroup",         "/sys/fs/cgroup/unified", "/sys/fs/cgroup/memory",
	"/sys/fs/cgroup/pids",    "/sys/fs/cgroup/cpu",     "/sys/fs/cgroup/freezer",
	"/sys/fs/cgroup/systemd",
};
#define GROUPS (sizeof(groups) / sizeof(groups[0]))

static struct attack_outcome make_cgroup(const struct attack_context *context)
{
	struct attack_outcome outcome = attack_refused(ENOENT);
	char path[256];
	(void)context;
	for (size_t i = 0; i < GROUPS; i++) {
		(void)snprintf(path, sizeof(path), "%s/coop-attack", groups[i]);
		outcome = attack_worse(outcome, attack_from(mkdir(path, 0755)));
		(void)rmdir(path);
	}
	return outcome;
}

static struct attack_outcome open_in_groups(const char *name)
{
	struct attack_outcome outcome = attack_refused(ENOENT);
	char path[256];
	for (size_t i = 0; i < GROUPS; i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", groups[i], name);
		outcome = attack_worse(outcome, attack_open(path, O_WRONLY));
	}
	return outcome;
}

static struct attack_outcome open_cgroup_procs(const struct attack_context *context)
{
	(void)context;
	return open_in_groups("cgroup.procs");
}

static struct attack_outcome open_release_agent(const struct attack_context *context)
{
	(void)context;
	return open_in_groups("release_agent");
}

static struct attack_outcome open_core_pattern(const struct attack_context *context)
{
	(void)context;
	return attack_open("/proc/sys/kernel/core_pattern", O_WRONLY);
}

static struct attack_outcome open_vm_setting(const struct attack_context *context)
{
	(void)context;
	return attack_worse(attack_open("/proc/sys/vm/overcommit_memory", O_WRONLY),
			    attack_open("/proc/sys/vm/drop_caches", O_WRONLY));
}

static struct attack_outcome open_sysrq(const struct attack_context *context)
{
	(void)context;
	return attack_open("/proc/sysrq-trigger", O_WRONLY);
}

static struct attack_outcome open_sysfs(const struct attack_context *context)
{
	(void)context;
	return attack_worse(attack_open("/sys/kernel/mm/transparent_hugepage/enabled", O_WRONLY),
			    attack_open("/sys/kernel/uevent_helper", O_WRONLY));
}

static struct attack_outcome open_memory_devices(const struct attack_context *context)
{
	(void)context;
	return attack_worse(attack_open("/dev/mem", O_RDONLY | O_NONBLOCK),
			    attack_open("/dev/kmsg", O_RDONLY | O_NONBLOCK));
}

static struct attack_outcome open_block_devices(const struct attack_context *context)
{
	struct attack_outcome outcome = attack_refused(ENOENT);
	struct stat found;
	char path[512];
	DIR *folder = opendir("/dev");
	(void)context;
	if (!folder)
		return attack_refused(errno);
	for (struct dirent *entry; (entry = readdir(folder));) {
		(void)snprintf(path, sizeof(path), "/dev/%s", entry->d_name);
		if (lstat(path, &found) == 0 && S_ISBLK(found.st_mode))
			outcome = attack_worse(outcome, attack_open(path, O_RDONLY | O_NONBLOCK));
	}
	(void)closedir(folder);
	return outcome;
}

static struct attack_outcome make_device(const struct attack_context *context)
{
	const char *path = attack_path(context, "WORKSPACE", "/device");
	return attack_worse(attack_from(mknod(path, S_IFCHR | 0666, makedev(1, 1))),
			    attack_from(mknod("/tmp/device", S_IFBLK | 0666, makedev(8, 0))));
}

static struct attack_outcome told_limit(int resource)
{
	struct rlimit limit;
	if (getrlimit((__rlimit_resource_t)resource, &limit) != 0)
		return attack_refused(errno);
	return attack_looked("%llu %llu", (unsigned long long)limit.rlim_cur,
			     (unsigned long long)limit.rlim_max);
}

static struct attack_outcome core_limit(const struct attack_context *context)
{
	(void)context;
	return told_limit(RLIMIT_CORE);
}

static struct attack_outcome locked_memory_limit(const struct attack_context *context)
{
	(void)context;
	return told_limit(RLIMIT_MEMLOCK);
}

static struct attack_outcome hosts_shared_file(const struct attack_context *context)
{
	return attack_read_secret(context, attack_param(context, "HOST_SHM"));
}

static struct attack_outcome hosts_segment(const struct attack_context *context)
{
	int key = (int)strtol(attack_param(context, "SYSV_KEY"), NULL, 10);
	int id = shmget(key, 0, 0);
	if (id < 0)
		return attack_refused(errno);
	void *at = shmat(id, NULL, SHM_RDONLY);
	return at == (void *)-1 ? attack_refused(errno) : attack_succeeded();
}

static struct attack_outcome shield_from_oom(const struct attack_context *context)
{
	(void)context;
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	return fd < 0 ? attack_refused(errno) : attack_from(write(fd, "-1000", 5));
}

/* Raising it is everybody's right, and so is a name of one's own: only a /proc that is read-only
 * refuses these. */
static struct attack_outcome write_own_files(const struct attack_context *context)
{
	(void)context;
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	struct attack_outcome outcome =
		fd < 0 ? attack_refused(errno) : attack_from(write(fd, "1000", 4));
	return attack_worse(outcome, attack_open("/proc/self/comm", O_WRONLY));
}

static struct attack_outcome kernel_addresses(const struct attack_context *context)
{
	unsigned long long address = 1;
	(void)context;
	FILE *file = fopen("/proc/kallsyms", "re");
	if (!file)
		return attack_refused(errno);
	int fields = fscanf(file, "%llx", &address);
	(void)fclose(file);
	return fields == 1 && address ? attack_succeeded() : attack_looked("zeros");
}

const struct attack attack_proc[] = {
	{"S-047", make_cgroup},        {"S-048", open_cgroup_procs},
	{"S-049", open_release_agent}, {"S-050", open_core_pattern},
	{"S-089", open_vm_setting},    {"S-051", open_sysrq},
	{"S-088", open_sysfs},         {"S-053", open_memory_devices},
	{"S-054", open_block_devices}, {"S-055", make_device},
	{"S-052", core_limit},         {"S-052.locked", locked_memory_limit},
	{"S-056", hosts_shared_file},  {"S-057", hosts_segment},
	{"S-084", shield_from_oom},    {"S-084.own", write_own_files},
	{"S-085", kernel_addresses},   {0},
};
