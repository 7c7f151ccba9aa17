/* Namespaces, mounts, and the rest of the kernel that no ordinary program needs. */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_open_tree
#define SYS_open_tree 428
#define SYS_fsopen 430
#endif
#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

static const int namespace_flags[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,   CLONE_NEWNET,
				      CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP};
#define NAMESPACE_FLAGS (sizeof(namespace_flags) / sizeof(namespace_flags[0]))

static struct attack_outcome by_unshare(const struct attack_context *context)
{
	(void)context;
	return attack_from(unshare(CLONE_NEWUSER));
}

/* Every kind, also together with the user namespace that would allow it. */
static struct attack_outcome by_unshare_each(const struct attack_context *context)
{
	struct attack_outcome outcome = attack_refused(ENOENT);
	(void)context;
	for (size_t i = 0; i < NAMESPACE_FLAGS; i++) {
		outcome = attack_worse(outcome, attack_from(unshare(namespace_flags[i])));
		outcome = attack_worse(outcome,
				       attack_from(unshare(namespace_flags[i] | CLONE_NEWUSER)));
	}
	return attack_worse(outcome, attack_from(unshare(CLONE_NEWTIME)));
}

static struct attack_outcome by_clone3(const struct attack_context *context)
{
	struct clone_args args = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
	(void)context;
	long child = syscall(SYS_clone3, &args, sizeof(args));
	if (child == 0)
		_exit(0);
	return attack_from(child);
}

static struct attack_outcome clone_with(unsigned long flags)
{
	long child = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
	if (child == 0)
		_exit(0);
	return attack_from(child);
}

static struct attack_outcome by_clone(const struct attack_context *context)
{
	(void)context;
	return clone_with(CLONE_NEWUSER);
}

static struct attack_outcome by_clone_each(const struct attack_context *context)
{
	struct attack_outcome outcome = attack_refused(ENOENT);
	(void)context;
	for (size_t i = 0; i < NAMESPACE_FLAGS; i++) {
		unsigned long flag = (unsigned long)namespace_flags[i];
		outcome = attack_worse(outcome, clone_with(flag));
		outcome = attack_worse(outcome, clone_with(flag | CLONE_NEWUSER));
	}
	return outcome;
}

static struct attack_outcome nested_mount(const struct attack_context *context)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
		return attack_refused(errno);
	return attack_from(mount("none", attack_param(context, "WORKSPACE"), "tmpfs", 0, NULL));
}

static struct attack_outcome nested_binfmt(const struct attack_context *context)
{
	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
		return attack_refused(errno);
	return attack_from(
		mount("none", attack_param(context, "WORKSPACE"), "binfmt_misc", 0, NULL));
}

static struct attack_outcome nested_release_agent(const struct attack_context *context)
{
	if (unshare(CLONE_NEWCGROUP) != 0)
		return attack_refused(errno);
	return attack_from(
		mount("none", attack_param(context, "WORKSPACE"), "cgroup", 0, "memory"));
}

static struct attack_outcome mount_tmpfs(const struct attack_context *context)
{
	return attack_from(mount("none", attack_param(context, "WORKSPACE"), "tmpfs", 0, NULL));
}

static struct attack_outcome remount_root(const struct attack_context *context)
{
	(void)context;
	return attack_from(mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL));
}

static struct attack_outcome unmount(const struct attack_context *context)
{
	(void)context;
	return attack_worse(attack_from(umount2("/proc", MNT_DETACH)),
			    attack_from(umount2("/tmp", MNT_DETACH)));
}

static struct attack_outcome new_mount_context(const struct attack_context *context)
{
	(void)context;
	return attack_from(syscall(SYS_fsopen, "tmpfs", 0));
}

static struct attack_outcome clone_tree(const struct attack_context *context)
{
	(void)context;
	return attack_from(syscall(SYS_open_tree, AT_FDCWD, "/", 1 /* OPEN_TREE_CLONE */));
}

static struct attack_outcome change_root(const struct attack_context *context)
{
	return attack_from(chroot(attack_param(context, "WORKSPACE")));
}

static struct attack_outcome enter_inits_mounts(const struct attack_context *context)
{
	(void)context;
	int fd = open("/proc/1/ns/mnt", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? attack_refused(errno) : attack_from(setns(fd, CLONE_NEWNS));
}

/* The own namespace can be opened: the call itself must be refused too. */
static struct attack_outcome enter_own_mounts(const struct attack_context *context)
{
	(void)context;
	int fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	return fd < 0 ? attack_refused(errno) : attack_from(setns(fd, 0));
}

static struct attack_outcome working_directory(const struct attack_context *context)
{
	char path[4096];
	struct stat top, here;
	(void)context;
	if (!getcwd(path, sizeof(path)) || path[0] != '/')
		return attack_looked("outside");
	if (stat("/", &top) != 0 || chdir("/") != 0 || chdir("..") != 0 || stat(".", &here) != 0)
		return attack_refused(errno);
	return attack_looked(top.st_ino == here.st_ino && top.st_dev == here.st_dev ? "below"
										    : "outside");
}

static struct attack_outcome add_key(const struct attack_context *context)
{
	(void)context;
	return attack_from(
		syscall(SYS_add_key, "user", "coop-attack", "x", 1, KEY_SPEC_PROCESS_KEYRING));
}

static struct attack_outcome open_keyring(const struct attack_context *context)
{
	(void)context;
	return attack_from(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_USER_KEYRING, 0));
}

static struct attack_outcome make_bpf_map(const struct attack_context *context)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};
	(void)context;
	return attack_from(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr)));
}

static struct attack_outcome open_perf(const struct attack_context *context)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_TASK_CLOCK,
				       .exclude_kernel = 1,
				       .exclude_hv = 1};
	(void)context;
	return attack_from(syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
}

static struct attack_outcome open_io_uring(const struct attack_context *context)
{
	uint32_t params[30] = {0};
	(void)context;
	return attack_from(syscall(SYS_io_uring_setup, 1, params));
}

static struct attack_outcome open_userfaultfd(const struct attack_context *context)
{
	(void)context;
	return attack_from(syscall(SYS_userfaultfd, O_CLOEXEC | 1 /* user mode only */));
}

#if defined(__x86_64__)
static struct attack_outcome old_getpid(const struct attack_context *context)
{
	long result;
	(void)context;
	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(20L)
			 : "memory", "r8", "r9", "r10", "r11");
	return result < 0 ? attack_refused((int)-result) : attack_succeeded();
}

static struct attack_outcome old_ptrace(const struct attack_context *context)
{
	long result;
	(void)context;
	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(26L), "b"((long)PTRACE_TRACEME), "c"(0L), "d"(0L)
			 : "memory", "r8", "r9", "r10", "r11");
	return result < 0 ? attack_refused((int)-result) : attack_succeeded();
}

#define X32 0x40000000L

static struct attack_outcome x32_getpid(const struct attack_context *context)
{
	(void)context;
	return attack_from(syscall(X32 | SYS_getpid));
}

static struct attack_outcome x32_ptrace(const struct attack_context *context)
{
	(void)context;
	return attack_from(syscall(X32 | 521, PTRACE_TRACEME, 0, 0, 0));
}
#endif

struct handle {
	struct file_handle head;
	unsigned char bytes[128];
};

static struct attack_outcome get_handle(const struct attack_context *context)
{
	struct handle handle = {.head.handle_bytes = sizeof(handle.bytes)};
	int mount = 0;
	(void)context;
	return attack_from(name_to_handle_at(AT_FDCWD, "/", &handle.head, &mount, 0));
}

static struct attack_outcome open_handle(const struct attack_context *context)
{
	struct handle handle = {.head.handle_bytes = 8, .head.handle_type = 1};
	(void)context;
	return attack_from(open_by_handle_at(AT_FDCWD, &handle.head, O_RDONLY));
}

static struct attack_outcome change_personality(const struct attack_context *context)
{
	(void)context;
	return attack_from(personality(READ_IMPLIES_EXEC));
}

/* Policy, not a wall: whatever it says, the program runs inside. */
static struct attack_outcome run_from_memory(const struct attack_context *context)
{
	char bytes[65536];
	int status = 0, from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int fd = memfd_create("attack", MFD_CLOEXEC);
	(void)context;
	if (fd < 0 || from < 0)
		return attack_refused(errno);
	for (ssize_t got; (got = read(from, bytes, sizeof(bytes))) > 0;) {
		if (write(fd, bytes, (size_t)got) != got)
			return attack_refused(errno);
	}
	pid_t child = fork();
	if (child == 0) {
		char *argv[] = {(char *)"attack", (char *)"list", NULL}, *env[] = {NULL};
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		(void)dup2(null, STDOUT_FILENO);
		(void)fexecve(fd, argv, env);
		_exit(99);
	}
	(void)waitpid(child, &status, 0);
	return attack_looked(status == 0 ? "runs" : "refused");
}

static struct attack_outcome open_fanotify(const struct attack_context *context)
{
	(void)context;
	/* A group that any user may have, were the call allowed. */
	return attack_from(syscall(SYS_fanotify_init, 0x200 /* report file ids */, O_RDONLY));
}

static struct attack_outcome read_kernel_log(const struct attack_context *context)
{
	char text[256];
	(void)context;
	return attack_from(klogctl(3, text, sizeof(text)));
}

static struct attack_outcome swap_on(const struct attack_context *context)
{
	return attack_from(swapon(attack_path(context, "WORKSPACE", "/file"), 0));
}

static struct attack_outcome set_host_name(const struct attack_context *context)
{
	(void)context;
	return attack_from(sethostname("attacked", 8));
}

static struct attack_outcome real_time(const struct attack_context *context)
{
	struct sched_param param = {.sched_priority = 1};
	(void)context;
	return attack_from(sched_setscheduler(0, SCHED_FIFO, &param));
}

static struct attack_outcome negative_nice(const struct attack_context *context)
{
	(void)context;
	return attack_from(setpriority(PRIO_PROCESS, 0, -5));
}

const struct attack attack_kernel[] = {
	{"S-029", by_unshare},
	{"S-029.each", by_unshare_each},
	{"S-030", by_clone3},
	{"S-031", by_clone},
	{"S-031.each", by_clone_each},
	{"S-032", nested_mount},
	{"S-033", mount_tmpfs},
	{"S-034", remount_root},
	{"S-035", unmount},
	{"S-036", new_mount_context},
	{"S-037", clone_tree},
	{"S-073", change_root},
	{"S-075", enter_inits_mounts},
	{"S-075.own", enter_own_mounts},
	{"S-097", working_directory},
	{"S-038", add_key},
	{"S-039", open_keyring},
	{"S-040", make_bpf_map},
	{"S-041", open_perf},
	{"S-042", open_io_uring},
	{"S-043", open_userfaultfd},
#if defined(__x86_64__)
	{"S-067", old_getpid},
	{"S-068", old_ptrace},
	{"S-069", x32_getpid},
	{"S-070", x32_ptrace},
#endif
	{"S-071", get_handle},
	{"S-072", open_handle},
	{"S-074", change_personality},
	{"S-028", run_from_memory},
	{"S-080", open_fanotify},
	{"S-086", read_kernel_log},
	{"S-087", swap_on},
	{"S-076", set_host_name},
	{"S-077", real_time},
	{"S-078", negative_nice},
	{"S-106", nested_release_agent},
	{"S-107", nested_binfmt},
	{0},
};
