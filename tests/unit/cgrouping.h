/* Groups of a keeper of this test, and processes in them. Included after cmocka.h. */
#ifndef COOP_TESTS_CGROUPING_H
#define COOP_TESTS_CGROUPING_H

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sandbox/cgroup/cgroup.h"

#define MIB (INT64_C(1) << 20)

static struct coop_cgroups groups;
static char keeper_name[64];

/* Where a host must have it all (a virtual machine made for that), the version is demanded:
 * COOP_TEST_CGROUP=2. */
static inline void check_demand(void)
{
	const char *demand = getenv("COOP_TEST_CGROUP");

	for (unsigned i = 0; demand && i < COOP_CG_COUNT; i++)
		assert_int_equal(groups.version[i], atoi(demand));
}

static inline int groups_make(void **state)
{
	static unsigned turn;

	(void)snprintf(keeper_name, sizeof keeper_name, "test-%d-%u", (int)getpid(), turn++);
	coop_cgroups_init(&groups, keeper_name);
	check_demand();
	return 0;
}

static inline int groups_remove(void **state)
{
	coop_cgroups_free(&groups);
	return 0;
}

static inline struct coop_cgroup
make_group(const char *path, const struct coop_sandbox_limits *limits, bool freezable)
{
	struct coop_cgroup group = {.fd = -1};
	struct coop_err err;

	int r = coop_cgroup_make(&groups, path, limits, freezable, &group, &err);
	if (r < 0)
		print_error("%s\n", err.message);
	assert_int_equal(r, 0);
	return group;
}

/* What cannot be had is refused by name, with the reason that is told at the start. True: so it
 * was. */
static inline bool refused(enum coop_controller controller,
			   const struct coop_sandbox_limits *limits, const char *field)
{
	struct coop_cgroup group = {.fd = -1};
	struct coop_err err;

	if (groups.version[controller] != 0)
		return false;
	assert_true(groups.why[controller][0]);
	assert_int_not_equal(groups.error, 0);
	assert_true(coop_cgroup_make(&groups, "p-1", limits, true, &group, &err) < 0);
	assert_int_equal(err.code, COOP_SANDBOX_UNAVAILABLE);
	assert_non_null(strstr(err.message, field));
	assert_non_null(strstr(err.message, groups.why[controller]));
	assert_non_null(strstr(err.details, field));
	assert_null(group.path);
	assert_int_equal(coop_cgroups_count(&groups), 0);
	return true;
}

/* A fork that is born in the group of version 2. */
static inline pid_t fork_into(int cgroup)
{
	struct clone_args args = {
		.flags = cgroup >= 0 ? CLONE_INTO_CGROUP : 0,
		.exit_signal = SIGCHLD,
		.cgroup = (unsigned)(cgroup >= 0 ? cgroup : 0),
	};

	return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

/* Starts `run` in the group, in the ways that a launcher has: born into it, or entering by its
 * doors. */
static inline pid_t start_in(const struct coop_cgroup *group, int (*run)(void))
{
	int doors[COOP_CG_COUNT];
	int count = coop_cgroup_doors(&groups, group, doors);

	assert_true(count >= 0);
	(void)fflush(NULL);
	pid_t pid = fork_into(group->fd);
	assert_true(pid >= 0);
	if (pid == 0) {
		for (int i = 0; i < count; i++) {
			if (write(doors[i], "0", 1) != 1)
				_exit(90);
		}
		_exit(run());
	}
	for (int i = 0; i < count; i++)
		(void)close(doors[i]);
	return pid;
}

static inline int status_of(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static inline void pause_ms(long ms)
{
	(void)nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L},
			NULL);
}

static inline void remove_group(struct coop_cgroup *group)
{
	int r;

	/* What was killed leaves its group a moment after it is reaped at the latest. */
	for (int i = 0; (r = coop_cgroup_remove(&groups, group)) == -EBUSY && i < 200; i++)
		pause_ms(5);
	assert_int_equal(r, 0);
	assert_null(group->path);
	assert_int_equal(group->fd, -1);
}

#endif
