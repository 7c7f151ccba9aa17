/* A keeper that is killed while it makes placeholders, at each of its system calls, leaves none. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "folder.h"
#include "sandbox/layout/ghosts.h"

#define COUNT 6
#define STEPS_MAX 2000

static char paths[COUNT][300];

static void list_kinds(struct coop_ghost ret[COUNT])
{
	static const struct coop_ghost kinds[COUNT] = {
		{.folder = true}, {0}, {.content = ".\n"}, {0}, {.content = ""}, {.folder = true}};

	for (size_t i = 0; i < COUNT; i++) {
		(void)snprintf(paths[i], sizeof paths[i], "%s/work/.name-%zu", folder, i);
		ret[i] = kinds[i];
		ret[i].path = paths[i];
	}
}

/* Traced from the moment when it begins to make them until it has. */
static void make_them(const char *state, int list)
{
	struct coop_ghost ghosts[COUNT];
	struct coop_ghosts *all = coop_ghosts_new(state, list);

	list_kinds(ghosts);
	if (!all || ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
		_exit(1);
	(void)raise(SIGSTOP);
	if (coop_ghosts_take(all, ghosts, COUNT) < 0)
		_exit(2);
	_exit(0);
}

/* Whether it was killed at that step; else it had come to its end. */
static bool kill_at(pid_t pid, int step)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSTOPPED(status));
	for (int i = 0; i < step; i++) {
		assert_int_equal(ptrace(PTRACE_SYSCALL, pid, NULL, NULL), 0);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (WIFEXITED(status)) {
			assert_int_equal(WEXITSTATUS(status), 0);
			return false;
		}
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return true;
}

static size_t standing(void)
{
	struct stat st;
	size_t count = 0;

	for (size_t i = 0; i < COUNT; i++)
		count += lstat(paths[i], &st) == 0;
	return count;
}

/* `saved`: its list has gone with its memory, as the guard has saved it. */
static void sweep(const char *state, bool saved)
{
	struct coop_ghost kinds[COUNT];
	size_t partly = 0;
	bool killed = true;

	list_kinds(kinds);
	for (int step = 1; killed; step++) {
		assert_true(step < STEPS_MAX);
		int list = memfd_create("placeholders", MFD_CLOEXEC);
		assert_true(list >= 0);
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			make_them(state, list);
		killed = kill_at(pid, step);
		size_t left = standing();
		partly += left > 0 && left < COUNT;
		if (saved) {
			coop_ghosts_save(state, list);
			(void)close(list);
			list = memfd_create("placeholders", MFD_CLOEXEC);
		}
		coop_ghosts_free(coop_ghosts_new(state, list));
		(void)close(list);
		assert_int_equal(standing(), 0);
		/* No unfinished one either. */
		assert_int_equal(rmdir(folder_path("work")), 0);
		assert_int_equal(mkdir(folder_path("work"), 0755), 0);
	}
	/* The control: it was killed while some stood. */
	assert_true(partly >= COUNT);
}

static int begin(void **state)
{
	int r = folder_make(state);

	return r ? r : mkdir(folder_path("work"), 0755) | mkdir(folder_path("state"), 0700);
}

static void test_killed_at_each_step(void **state)
{
	char place[300];

	(void)state;
	(void)snprintf(place, sizeof place, "%s/state", folder);
	sweep(place, false);
	sweep(place, true);
}

/* On a file system other than the state's each folder has a socket of its own. */
static void test_killed_at_each_step_elsewhere(void **state)
{
	char place[] = "/dev/shm/coop-u-XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(place));
	sweep(place, false);
	char list[64];
	(void)snprintf(list, sizeof list, "%s/ghosts", place);
	assert_int_equal(unlink(list), 0);
	assert_int_equal(rmdir(place), 0);
}

/* What was announced, and is not what would have been made: it stays. */
static void test_what_only_has_the_name_stays(void **state)
{
	char line[400], other[300];
	struct stat st;

	(void)state;
	(void)snprintf(other, sizeof other, "%s/work/.name", folder);
	for (int kind = 0; kind < 4; kind++) {
		int list = memfd_create("placeholders", MFD_CLOEXEC);
		/* A time long ago; or just now, for one that nobody makes like that. */
		long since = kind < 2 ? 1000 : (long)time(NULL);
		int size = snprintf(line, sizeof line, "%u 0 0 %ld %s", (unsigned)S_IFSOCK, since,
				    other);
		assert_int_equal(write(list, line, (size_t)size + 2), size + 2);
		if (kind == 0)
			assert_int_equal(mkdir(other, 0755), 0);
		else
			folder_write("work/.name", "mine", 4, kind == 1 ? 0444 : 0644);
		if (kind == 3) {
			assert_int_equal(unlink(other), 0);
			assert_int_equal(mkdir(other, 0777), 0);
			assert_int_equal(chmod(other, 0777), 0);
		}
		coop_ghosts_free(coop_ghosts_new(folder, list));
		(void)close(list);
		assert_int_equal(lstat(other, &st), 0);
		assert_int_equal(S_ISDIR(st.st_mode) ? rmdir(other) : unlink(other), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_killed_at_each_step, begin, folder_remove),
		cmocka_unit_test_setup_teardown(test_killed_at_each_step_elsewhere, begin,
						folder_remove),
		cmocka_unit_test_setup_teardown(test_what_only_has_the_name_stays, begin,
						folder_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
