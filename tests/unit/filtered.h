/* Runs attacks and ordinary work in children under a system call filter. Included after
 * cmocka.h. */
#ifndef COOP_TESTS_FILTERED_H
#define COOP_TESTS_FILTERED_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "sandbox/filter/filter.h"

/* In a child: leaves the function with the number of the line where something was not as
 * expected. */
#define EXPECT(condition)                                                           \
	do {                                                                        \
		if (!(condition)) {                                                 \
			fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, \
				strerror(errno));                                   \
			return 1;                                                   \
		}                                                                   \
	} while (0)
#define EXPECT_ERROR(call, error) EXPECT((errno = 0, (call) == -1 && errno == (error)))

static inline int filtered_load(const void *code, size_t count)
{
	struct sock_fprog program = {.len = (unsigned short)count,
				     .filter = (struct sock_filter *)(uintptr_t)code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

/* Where the program of that kind begins in what coop_filter_build made. */
static inline const uint8_t *filtered_find(const struct coop_buf *all, enum coop_filter kind,
					   uint32_t *ret_count)
{
	const uint8_t *at = coop_buf_front(all);

	for (enum coop_filter i = COOP_FILTER_STANDARD;; i++) {
		memcpy(ret_count, at, sizeof *ret_count);
		if (i == kind)
			return at + 8;
		at += 8 + *ret_count * sizeof(struct sock_filter);
	}
}

/* The wait status of `work` in a child, in a session of its own and as somebody without rights if
 * `user` says so. */
static inline int filtered_run(enum coop_filter kind, bool user, int (*work)(void))
{
	struct coop_buf all = {0};
	uint32_t count;
	int status;

	assert_int_equal(coop_filter_build(&all), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		const uint8_t *code = filtered_find(&all, kind, &count);
		if (setsid() < 0 || (user && (setgid(65534) < 0 || setuid(65534) < 0)))
			_exit(98);
		if (filtered_load(code, count) < 0)
			_exit(99);
		_exit(work());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	coop_buf_clear(&all);
	return status;
}

/* The wait status of a shell that runs `script`, started as most programs start others; -1: it
 * could not be. */
static inline int filtered_shell(const char *script)
{
	char shell[] = "/bin/sh", option[] = "-c";
	char *argv[] = {shell, option, (char *)(uintptr_t)script, NULL}, *envp[] = {NULL};
	int status;
	pid_t pid;

	if (posix_spawn(&pid, shell, NULL, NULL, argv, envp) != 0)
		return -1;
	return waitpid(pid, &status, 0) == pid ? status : -1;
}

/* As whoever runs the tests and, where that is root, as somebody else too: root sees refusals that
 * are the filter's own. */
static inline void filtered_holds(enum coop_filter kind, int (*work)(void))
{
	assert_int_equal(filtered_run(kind, false, work), 0);
	if (geteuid() == 0)
		assert_int_equal(filtered_run(kind, true, work), 0);
}

#endif
