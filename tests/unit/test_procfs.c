/* A process of the kernel's table: what is read of one, that a number which is another's by now is
 * never signalled, and that what it carries in its limit of locks is handed on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/procfs.h"

#define MARK UINT64_C(0x5ca1ab1e0000)

static pid_t sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

static void who(void **state)
{
	struct coop_proc self, child;
	pid_t pid = sleeper();

	assert_int_equal(coop_proc_read(getpid(), &self), 0);
	assert_int_equal(coop_proc_read(pid, &child), 0);
	assert_int_equal(child.pid, pid);
	assert_int_equal(child.parent, getpid());
	assert_int_equal(child.group, getpgrp());
	assert_int_equal(child.session, getsid(0));
	assert_true(child.start_time >= self.start_time);
	assert_false(child.dead);
	assert_true(coop_proc_is_there(pid, child.start_time));
	assert_false(coop_proc_is_there(pid, child.start_time + 1));
	/* Another one that has got the number since. */
	struct coop_proc other = child;
	other.start_time++;
	assert_int_equal(coop_proc_signal(&other, SIGKILL), -ESRCH);
	assert_int_equal(coop_proc_signal(&child, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	assert_int_equal(coop_proc_read(pid, &child), 0);
	assert_true(child.dead);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(coop_proc_read(pid, &child), -ENOENT);
}

static void marks(void **state)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_LOCKS, &limit), 0);
	limit.rlim_cur = MARK;
	assert_int_equal(setrlimit(RLIMIT_LOCKS, &limit), 0);
	pid_t pid = sleeper();
	assert_true(coop_proc_mark(pid) == MARK);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(coop_proc_mark(pid) == 0);
}

struct search {
	pid_t pid;
	int met;
};

static int meet(void *user, const struct coop_proc *proc)
{
	struct search *search = user;

	search->met++;
	return proc->pid == search->pid ? 42 : 0;
}

static void table(void **state)
{
	struct search search = {.pid = getpid()}, nobody = {.pid = -1};

	assert_int_equal(coop_proc_each(meet, &search), 42);
	assert_int_equal(coop_proc_each(meet, &nobody), 0);
	assert_true(search.met >= 1 && nobody.met >= search.met);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who),
		cmocka_unit_test(marks),
		cmocka_unit_test(table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
