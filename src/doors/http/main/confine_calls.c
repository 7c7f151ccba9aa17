#include "doors/http/main/confine_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

/* What the loop, TLS, memory and time need. Names that an architecture does not know are left out
 * there. */
static const char *const allowed[] = {
	/* descriptors that are there, and those that come over them */
	"read", "readv", "pread64", "write", "writev", "recvfrom", "recvmsg", "sendto", "sendmsg",
	"accept", "accept4", "shutdown", "close", "close_range", "dup", "dup2", "dup3", "lseek",
	"fstat", "getsockopt", "setsockopt", "getsockname", "getpeername",
	/* the loop */
	"epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "eventfd2",
	"pipe2", "poll", "ppoll", "select", "pselect6",
	/* memory */
	"brk", "munmap", "mremap", "madvise", "membarrier",
	/* time and chance */
	"clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time",
	"getrandom",
	/* itself */
	"getpid", "getppid", "gettid", "getuid", "geteuid", "getgid", "getegid", "getrusage",
	"uname", "futex", "set_robust_list", "rseq", "sched_yield", "sched_getaffinity",
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait",
	"sigaltstack", "restart_syscall", "exit", "exit_group", NULL};

/* Nothing in the gateway, nor in a library that it uses, ever does these: who does has taken it
 * over. Other calls that are not allowed fail with an error, because libraries try things, such as
 * to open their configuration, and go on without. */
static const char *const deadly[] = {"bpf",
				     "connect",
				     "bind",
				     "listen",
				     "chroot",
				     "pivot_root",
				     "mount",
				     "umount2",
				     "move_mount",
				     "open_tree",
				     "fsopen",
				     "fsmount",
				     "mount_setattr",
				     "unshare",
				     "setns",
				     "process_vm_readv",
				     "process_vm_writev",
				     "pidfd_getfd",
				     "kcmp",
				     "perf_event_open",
				     "userfaultfd",
				     "io_uring_setup",
				     "io_uring_enter",
				     "io_uring_register",
				     "add_key",
				     "request_key",
				     "keyctl",
				     "init_module",
				     "finit_module",
				     "delete_module",
				     "kexec_load",
				     "kexec_file_load",
				     "reboot",
				     "swapon",
				     "swapoff",
				     "acct",
				     "quotactl",
				     "settimeofday",
				     "clock_settime",
				     "open_by_handle_at",
				     "personality",
				     "modify_ldt",
				     "fanotify_init",
				     "lookup_dcookie",
				     NULL};

/* The same, but sanitizers need them: to name the lines of a report, and to look for leaks. */
static const char *const deadly_unless_sanitized[] = {"execve", "execveat", "ptrace", NULL};

static int add(scmp_filter_ctx filter, uint32_t action, const char *const *names)
{
	int r = 0;
	for (; r == 0 && *names; names++) {
		const int number = seccomp_syscall_resolve_name(*names);
		/* -EACCES: it is the default action already. */
		if (number != __NR_SCMP_ERROR && number >= 0)
			r = seccomp_rule_add(filter, action, number, 0);
	}
	return r;
}

/* A call that is allowed if one argument, seen through a mask, is as said. */
struct condition {
	int number;
	unsigned argument;
	scmp_datum_t mask, value;
};

#define WHOLE (~(scmp_datum_t)0)

static int add_conditions(scmp_filter_ctx filter)
{
	const struct condition conditions[] = {
		/* No memory ever becomes code. */
		{SCMP_SYS(mmap), 2, PROT_EXEC, 0},
		{SCMP_SYS(mprotect), 2, PROT_EXEC, 0},
		{SCMP_SYS(fcntl), 1, WHOLE, F_GETFL},
		{SCMP_SYS(fcntl), 1, WHOLE, F_SETFL},
		{SCMP_SYS(fcntl), 1, WHOLE, F_GETFD},
		{SCMP_SYS(fcntl), 1, WHOLE, F_SETFD},
		{SCMP_SYS(fcntl), 1, WHOLE, F_DUPFD_CLOEXEC},
		{SCMP_SYS(ioctl), 1, WHOLE, FIONBIO},
		{SCMP_SYS(ioctl), 1, WHOLE, FIONREAD},
		{SCMP_SYS(ioctl), 1, WHOLE, FIOCLEX},
		{SCMP_SYS(prctl), 0, WHOLE, PR_SET_NAME},
		{SCMP_SYS(prctl), 0, WHOLE, PR_SET_VMA},
		/* fstat() of the C library. */
		{SCMP_SYS(newfstatat), 3, AT_EMPTY_PATH, AT_EMPTY_PATH},
		/* Limits are looked at, not changed. */
		{SCMP_SYS(prlimit64), 2, WHOLE, 0},
		/* abort() */
		{SCMP_SYS(tgkill), 0, WHOLE, (scmp_datum_t)getpid()},
	};
	int r = 0;
	for (size_t i = 0; r == 0 && i < sizeof conditions / sizeof *conditions; i++) {
		const struct condition *c = &conditions[i];
		const struct scmp_arg_cmp compare =
			SCMP_CMP64(c->argument, SCMP_CMP_MASKED_EQ, c->mask, c->value);
		if (c->number >= 0)
			r = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW, c->number, 1, &compare);
	}
	return r;
}

static int fill(scmp_filter_ctx filter)
{
	int r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (r == 0)
		r = add(filter, SCMP_ACT_KILL_PROCESS, deadly);
	if (COOP_CONFINE_SANITIZED)
		return r == 0 ? seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(socket), 0)
			      : r;
	if (r == 0)
		r = add(filter, SCMP_ACT_KILL_PROCESS, deadly_unless_sanitized);
	if (r == 0)
		r = add(filter, SCMP_ACT_ALLOW, allowed);
	if (r == 0)
		r = add_conditions(filter);
	/* The C library falls back to clone() then, which is refused in earnest. */
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	return r;
}

int coop_confine_calls(void)
{
	const uint32_t others = COOP_CONFINE_SANITIZED ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO(EPERM);
	scmp_filter_ctx filter = seccomp_init(others);
	if (!filter)
		return -ENOMEM;
	/* Set by coop_confine() itself; libseccomp would set it once more. */
	int r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0);
	/* A tree of comparisons: the filter runs with every call. */
	if (r == 0)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r == 0)
		r = fill(filter);
	if (r == 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r;
}
