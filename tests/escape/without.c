/* without [--when FILE] CALL[:ARG=VALUE|:ARG&MASK]=ERRNO… -- PROGRAM [ARG…]: runs a program for
 * which, and for all that it starts, some system calls fail; a host that lacks something, or
 * something that breaks at a chosen moment.
 *
 * With --when a call fails only while FILE is there and holds two numbers: which rule, from 0, and
 * which call of it, from 1, counted from when FILE was made. The file goes when the call has
 * failed. The program is then a child of this one, which decides. */
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define RULES_MAX 32
#define CODE_MAX (RULES_MAX * 8 + 16)

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self 446
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#else
#define ARCH AUDIT_ARCH_AARCH64
#endif

enum test { TEST_NONE, TEST_EQUAL, TEST_MASK };

struct rule {
	uint32_t number;
	enum test test;
	uint32_t argument, value;
	int error;
};

static const struct {
	const char *name;
	uint32_t number;
} calls[] = {
	{"landlock_create_ruleset", SYS_landlock_create_ruleset},
	{"landlock_add_rule", SYS_landlock_create_ruleset + 1},
	{"landlock_restrict_self", SYS_landlock_restrict_self},
	{"open_tree", 428},
	{"move_mount", 429},
	{"fsopen", 430},
	{"fsconfig", 431},
	{"fsmount", 432},
	{"mount_setattr", SYS_mount_setattr},
	{"mount", SYS_mount},
	{"pivot_root", SYS_pivot_root},
	{"umount2", SYS_umount2},
	{"clone3", SYS_clone3},
	{"clone", SYS_clone},
	{"unshare", SYS_unshare},
	{"setns", SYS_setns},
	{"seccomp", SYS_seccomp},
	{"prctl", SYS_prctl},
	{"prlimit64", SYS_prlimit64},
	{"setrlimit", SYS_setrlimit},
	{"capset", SYS_capset},
	{"setsid", SYS_setsid},
	{"close_range", SYS_close_range},
	{"chdir", SYS_chdir},
	{"fchdir", SYS_fchdir},
	{"dup3", SYS_dup3},
#ifdef SYS_dup2
	{"dup2", SYS_dup2},
#endif
	{"execve", SYS_execve},
	{"execveat", SYS_execveat},
	{"mkdirat", SYS_mkdirat},
	{"openat2", SYS_openat2},
	{"socket", SYS_socket},
	{"ioctl", SYS_ioctl},
	{"memfd_create", SYS_memfd_create},
	{"pidfd_open", SYS_pidfd_open},
};

static const struct {
	const char *name;
	int number;
} errors[] = {
	{"EPERM", EPERM},   {"EACCES", EACCES}, {"ENOSYS", ENOSYS}, {"EINVAL", EINVAL},
	{"ENOMEM", ENOMEM}, {"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EMFILE", EMFILE},
	{"EAGAIN", EAGAIN}, {"EBUSY", EBUSY},
};

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "without: %s: %s\n", what, strerror(errno));
	exit(2);
}

static int parse_name(const char *text, size_t length, uint32_t *ret)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		if (strlen(calls[i].name) == length && strncmp(calls[i].name, text, length) == 0) {
			*ret = calls[i].number;
			return 0;
		}
	}
	return -EINVAL;
}

/* "prctl:0=38=EPERM", "clone3=EPERM". */
static int parse_rule(const char *text, struct rule *ret)
{
	const char *error = strrchr(text, '='), *test = strchr(text, ':');
	if (!error || parse_name(text, strcspn(text, ":="), &ret->number) < 0)
		return -EINVAL;
	ret->test = TEST_NONE;
	if (test) {
		char *end = NULL;
		ret->argument = (uint32_t)strtoul(test + 1, &end, 10);
		ret->test = *end == '&' ? TEST_MASK : TEST_EQUAL;
		ret->value = (uint32_t)strtoul(end + 1, NULL, 0);
	}
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (strcmp(errors[i].name, error + 1) == 0) {
			ret->error = errors[i].number;
			return 0;
		}
	}
	return -EINVAL;
}

/* Each rule: not this number, on to the next; the argument's test; the answer. */
static unsigned short compile(const struct rule *rules, size_t count, bool ask,
			      struct sock_filter *code)
{
	unsigned short n = 0;
	code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						 offsetof(struct seccomp_data, arch));
	code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0);
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	for (size_t i = 0; i < count; i++) {
		const struct rule *rule = &rules[i];
		uint32_t answer =
			ask ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | (uint32_t)rule->error;
		unsigned char body = rule->test == TEST_NONE ? 1 : 3;
		uint32_t at = (uint32_t)offsetof(struct seccomp_data, args) + 8 * rule->argument;
		code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
							 offsetof(struct seccomp_data, nr));
		code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rule->number, 0,
							 body);
		if (rule->test != TEST_NONE) {
			unsigned short kind = rule->test == TEST_EQUAL ? BPF_JEQ : BPF_JSET;
			code[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at);
			code[n++] = (struct sock_filter)BPF_JUMP(
				(unsigned short)(BPF_JMP | kind | BPF_K), rule->value, 0, 1);
		}
		code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, answer);
	}
	code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return n;
}

/* Root needs no no_new_privs for it, and the programs under test shall set their own. */
static int install(const struct rule *rules, size_t count, bool ask)
{
	struct sock_filter code[CODE_MAX];
	struct sock_fprog program = {.len = compile(rules, count, ask, code), .filter = code};
	unsigned int flags = ask ? SECCOMP_FILTER_FLAG_NEW_LISTENER : 0;
	long result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	if (result < 0 && errno == EACCES && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
		result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
	if (result < 0)
		die("seccomp");
	return (int)result;
}

static void send_fd(int socket, int fd)
{
	char room[CMSG_SPACE(sizeof(int))] = {0}, byte = 0;
	struct iovec piece = {&byte, 1};
	struct msghdr message = {.msg_iov = &piece,
				 .msg_iovlen = 1,
				 .msg_control = room,
				 .msg_controllen = sizeof(room)};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(int));
	if (sendmsg(socket, &message, 0) != 1)
		die("sendmsg");
}

static int receive_fd(int socket)
{
	char room[CMSG_SPACE(sizeof(int))] = {0}, byte;
	struct iovec piece = {&byte, 1};
	struct msghdr message = {.msg_iov = &piece,
				 .msg_iovlen = 1,
				 .msg_control = room,
				 .msg_controllen = sizeof(room)};
	int fd = -1;
	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1 || !CMSG_FIRSTHDR(&message))
		die("recvmsg");
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return fd;
}

/* What FILE says: which call of which rule is to fail. False if it is not there. */
static bool read_order(const char *when, struct timespec *ret_made, long *ret_which,
		       size_t *ret_rule)
{
	char text[64] = "", *end = NULL;
	struct stat found;
	int fd = open(when, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool well = fstat(fd, &found) == 0 && read(fd, text, sizeof(text) - 1) > 0;
	(void)close(fd);
	if (!well)
		return false;
	*ret_made = found.st_mtim;
	*ret_rule = strtoul(text, &end, 10);
	*ret_which = strtol(end, NULL, 10);
	return true;
}

static bool fits(const struct rule *rule, const struct seccomp_data *data)
{
	uint32_t value = (uint32_t)data->args[rule->argument];
	if (rule->number != (uint32_t)data->nr)
		return false;
	return rule->test == TEST_NONE ||
	       (rule->test == TEST_EQUAL ? value == rule->value : (value & rule->value) != 0);
}

/* Only what sets a process up is to fail, not what the process itself does: its program is another
 * one, on disk. */
static bool sets_up(uint32_t pid)
{
	char path[32], program[4096];
	(void)snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	ssize_t length = readlink(path, program, sizeof(program) - 1);
	if (length <= 0)
		return true;
	program[length] = '\0';
	return strstr(program, "memfd:") || strstr(program, "/coop-keeper");
}

/* The error that this call is to get, or 0. The count begins anew with each new file. */
static int verdict(const char *when, const struct rule *rules, size_t count,
		   const struct seccomp_notif *ask)
{
	static struct timespec seen;
	static long so_far;
	struct timespec made;
	long which;
	size_t rule;
	if (!read_order(when, &made, &which, &rule) || rule >= count ||
	    !fits(&rules[rule], &ask->data) || !sets_up(ask->pid))
		return 0;
	if (made.tv_sec != seen.tv_sec || made.tv_nsec != seen.tv_nsec) {
		seen = made;
		so_far = 0;
	}
	if (++so_far != which)
		return 0;
	so_far = 0;
	(void)unlink(when);
	return rules[rule].error;
}

static pid_t program_pid;

static void pass_on(int number)
{
	(void)kill(program_pid, number);
}

static int decide(int listener, const char *when, const struct rule *rules, size_t count)
{
	int status = 0;
	for (;;) {
		struct seccomp_notif ask = {0};
		struct seccomp_notif_resp answer = {0};
		if (waitpid(program_pid, &status, WNOHANG) == program_pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		/* Not for ever: the program may have ended just before. */
		struct pollfd wait = {.fd = listener, .events = POLLIN};
		if (poll(&wait, 1, 100) != 1 || !(wait.revents & POLLIN) ||
		    ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &ask) != 0) {
			if (wait.revents & POLLHUP)
				(void)poll(NULL, 0, 10);
			continue;
		}
		answer.id = ask.id;
		answer.error = -verdict(when, rules, count, &ask);
		answer.flags = answer.error ? 0u : (uint32_t)SECCOMP_USER_NOTIF_FLAG_CONTINUE;
		(void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	}
}

static void woken(int number)
{
	(void)number;
}

static int run_below(const char *when, const struct rule *rules, size_t count, char **argv)
{
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		die("socketpair");
	/* The end of the program must wake the wait for a call. */
	struct sigaction action = {.sa_handler = woken};
	(void)sigaction(SIGCHLD, &action, NULL);
	action.sa_handler = pass_on;
	(void)sigaction(SIGTERM, &action, NULL);
	program_pid = fork();
	if (program_pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		send_fd(ends[1], install(rules, count, true));
		(void)execv(argv[0], argv);
		die(argv[0]);
	}
	(void)close(ends[1]);
	return decide(receive_fd(ends[0]), when, rules, count);
}

int main(int argc, char **argv)
{
	struct rule rules[RULES_MAX] = {0};
	const char *when = NULL;
	size_t count = 0;
	int next = 1;
	if (argc > 2 && strcmp(argv[1], "--when") == 0) {
		when = argv[2];
		next = 3;
	}
	for (; next < argc && strcmp(argv[next], "--") != 0; next++) {
		errno = EINVAL;
		if (count == RULES_MAX || parse_rule(argv[next], &rules[count++]) < 0)
			die(argv[next]);
	}
	if (next + 1 >= argc || count == 0) {
		fputs("usage: without [--when FILE] CALL[:ARG=VALUE]=ERRNO… -- PROGRAM [ARG…]\n",
		      stderr);
		return 2;
	}
	if (when)
		return run_below(when, rules, count, argv + next + 1);
	(void)install(rules, count, false);
	(void)execvp(argv[next + 1], argv + next + 1);
	die(argv[next + 1]);
}
