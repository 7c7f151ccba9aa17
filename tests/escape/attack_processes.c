/* Other processes: those of the host, and the first process of the sandbox itself. */
#include "attack.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SYS_pidfd_getfd
#define SYS_pidfd_getfd 438
#endif

extern char **environ;

static pid_t victim(const struct attack_context *context)
{
	return (pid_t)strtol(attack_param(context, "HOST_PID"), NULL, 10);
}

static const char *victims(const struct attack_context *context, const char *name, const char *rest)
{
	static char path[8192];
	(void)snprintf(path, sizeof(path), "/proc/%d/%s%s", (int)victim(context), name, rest);
	return path;
}

static struct attack_outcome victims_root(const struct attack_context *context)
{
	return attack_read_secret(context,
				  victims(context, "root", attack_param(context, "SECRET")));
}

static struct attack_outcome victims_environ(const struct attack_context *context)
{
	return attack_read_secret(context, victims(context, "environ", ""));
}

static struct attack_outcome victims_memory(const struct attack_context *context)
{
	return attack_open(victims(context, "mem", ""), O_RDWR);
}

static struct attack_outcome inits_root(const struct attack_context *context)
{
	char path[4096];
	(void)snprintf(path, sizeof(path), "/proc/1/root%s", attack_param(context, "SECRET"));
	return attack_read_secret(context, path);
}

static struct attack_outcome inits_environ(const struct attack_context *context)
{
	return attack_read_secret(context, "/proc/1/environ");
}

static struct attack_outcome inits_memory(const struct attack_context *context)
{
	(void)context;
	return attack_open("/proc/1/mem", O_RDWR);
}

static struct attack_outcome inits_descriptors(const struct attack_context *context)
{
	(void)context;
	return attack_open("/proc/1/fd", O_RDONLY | O_DIRECTORY);
}

static struct attack_outcome trace(pid_t pid)
{
	struct attack_outcome outcome = attack_from(ptrace(PTRACE_ATTACH, pid, NULL, NULL));
	if (outcome.kind == ATTACK_OK) {
		(void)waitpid(pid, NULL, __WALL);
		(void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
	}
	return outcome;
}

static struct attack_outcome trace_victim(const struct attack_context *context)
{
	return trace(victim(context));
}

static struct attack_outcome trace_init(const struct attack_context *context)
{
	(void)context;
	return trace(1);
}

/* An address that is not there: EFAULT says that the call was let in. */
static struct attack_outcome read_memory(const struct attack_context *context)
{
	char text[8];
	struct iovec local = {text, sizeof(text)}, remote = {(void *)4096, sizeof(text)};
	long got = process_vm_readv(victim(context), &local, 1, &remote, 1, 0);
	return got < 0 && errno == EFAULT ? attack_succeeded() : attack_from(got);
}

static struct attack_outcome open_pidfd(const struct attack_context *context)
{
	return attack_from(syscall(SYS_pidfd_open, victim(context), 0));
}

/* Where the host's process is out of sight, the call is tried on the own one: it must be refused
 * all the same. */
static struct attack_outcome steal_descriptor(const struct attack_context *context)
{
	long pidfd = syscall(SYS_pidfd_open, victim(context), 0);
	if (pidfd < 0)
		pidfd = syscall(SYS_pidfd_open, getpid(), 0);
	if (pidfd < 0)
		return attack_refused(errno);
	return attack_from(syscall(SYS_pidfd_getfd, pidfd, 0, 0));
}

/* The victim blocks the signal, so that the runner sees whether it came. */
static struct attack_outcome signal_victim(const struct attack_context *context)
{
	return attack_from(kill(victim(context), SIGUSR1));
}

static struct attack_outcome signal_in_other_ways(const struct attack_context *context)
{
	return attack_worse(
		attack_from(kill(-victim(context), SIGUSR1)),
		attack_from(syscall(SYS_tgkill, victim(context), victim(context), SIGUSR1)));
}

#if defined(__x86_64__)
static long old_call(long number, long a, long b, long c)
{
	long result;
	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "a"(number), "b"(a), "c"(b), "d"(c)
			 : "memory", "r8", "r9", "r10", "r11");
	return result;
}

static struct attack_outcome signal_by_old_call(const struct attack_context *context)
{
	/* kill is 37 there. */
	long result = old_call(37, victim(context), SIGUSR1, 0);
	return result < 0 ? attack_refused((int)-result) : attack_succeeded();
}
#endif

static struct attack_outcome descriptors(const struct attack_context *context)
{
	return attack_looked("%d", context->open_fds);
}

static struct attack_outcome inherited_sockets(const struct attack_context *context)
{
	return attack_looked("%d", context->sockets);
}

static struct attack_outcome keepers_environment(const struct attack_context *context)
{
	const char *marker = attack_param(context, "MARKER");
	for (char **entry = environ; *entry; entry++) {
		if (strstr(*entry, marker))
			return attack_succeeded();
	}
	struct attack_outcome outcome = attack_read_secret(context, "/proc/1/environ");
	return outcome.kind == ATTACK_OK ? outcome : attack_looked("absent");
}

/* The keeper's own files: the program of this process, of the first process, and the installed
 * one. */
static struct attack_outcome overwrite_self(const struct attack_context *context)
{
	(void)context;
	return attack_open("/proc/self/exe", O_WRONLY);
}

static struct attack_outcome overwrite_init(const struct attack_context *context)
{
	(void)context;
	return attack_open("/proc/1/exe", O_WRONLY);
}

static struct attack_outcome overwrite_coop(const struct attack_context *context)
{
	return attack_open(attack_param(context, "KEEPER_PROGRAM"), O_WRONLY);
}

const struct attack attack_processes[] = {
	{"S-010", victims_root},
	{"S-011", inits_root},
	{"S-012", victims_environ},
	{"S-012.memory", victims_memory},
	{"S-013", inits_environ},
	{"S-014", inits_memory},
	{"S-014.fd", inits_descriptors},
	{"S-015", trace_victim},
	{"S-016", trace_init},
	{"S-017", read_memory},
	{"S-018", open_pidfd},
	{"S-019", steal_descriptor},
	{"S-020", signal_victim},
	{"S-020.others", signal_in_other_ways},
#if defined(__x86_64__)
	{"S-021", signal_by_old_call},
#endif
	{"S-045", descriptors},
	{"S-046", keepers_environment},
	{"S-102", inherited_sockets},
	{"S-125", overwrite_self},
	{"S-125.init", overwrite_init},
	{"S-125.coop", overwrite_coop},
	{0},
};
