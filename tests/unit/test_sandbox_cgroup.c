/* Control groups of the host that the test runs on: each limit is exceeded, and the kernel's answer
 * seen from both sides. What the host does not give must be refused with a reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/mem.h"
#include "cgrouping.h"
#include "sandbox/cgroup/cgroup_file.h"
#include "sandbox/cgroup/cgroup_folder.h"

static int sleep_long(void)
{
	while (pause() < 0)
		continue;
	return 0;
}

static int touch_memory(size_t size)
{
	char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return 1;
	for (size_t i = 0; i < size; i += 4096)
		((volatile char *)memory)[i] = 1;
	return 0;
}

static int touch_much(void)
{
	return touch_memory(256 * MIB);
}

static int touch_little(void)
{
	return touch_memory(8 * MIB);
}

/* Files in memory: a private /tmp is one. */
static int fill_files(void)
{
	static char block[1 << 16];
	int fd = memfd_create("fill", MFD_CLOEXEC);

	for (int i = 0; i < 4096; i++) {
		if (write(fd, block, sizeof block) != (ssize_t)sizeof block)
			return 1;
	}
	return 0;
}

static void memory_is_limited(void **state)
{
	static int (*const ways[])(void) = {touch_much, fill_files};
	struct coop_sandbox_limits limits = {.memory_bytes = 64 * MIB};
	struct coop_cgroup_facts facts;

	if (refused(COOP_CG_MEMORY, &limits, "memory_bytes"))
		return;
	for (size_t i = 0; i < 2; i++) {
		struct coop_cgroup group = make_group("p-1", &limits, false);
		assert_int_equal(status_of(start_in(&group, touch_little)), 0);
		coop_cgroup_facts(&groups, &group, &facts);
		assert_int_equal(facts.oom_kills, 0);
		int status = status_of(start_in(&group, ways[i]));
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGKILL);
		coop_cgroup_facts(&groups, &group, &facts);
		assert_true(facts.oom_kills >= 1);
		assert_in_range(facts.memory_peak, 48 * MIB, 65 * MIB);
		remove_group(&group);
	}
}

static int fork_many(void)
{
	int born = 0;
	pid_t pid;

	while (born < 50 && (pid = fork()) >= 0) {
		if (pid == 0)
			_exit(sleep_long());
		born++;
	}
	int error = errno;
	/* All of them are children; whoever is left dies with the group. */
	if (born == 50 || error != EAGAIN)
		return 99;
	return born;
}

static void pids_are_limited(void **state)
{
	struct coop_sandbox_limits limits = {.max_pids = 6};
	struct coop_cgroup_facts facts;

	if (refused(COOP_CG_PIDS, &limits, "max_pids"))
		return;
	struct coop_cgroup group = make_group("p-1", &limits, true);
	int status = status_of(start_in(&group, fork_many));
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 5);
	coop_cgroup_facts(&groups, &group, &facts);
	assert_true(facts.pids_refused >= 1);
	/* The five are somebody else's children now, and still in it. */
	assert_int_equal(coop_cgroup_remove(&groups, &group), -EBUSY);
	assert_non_null(group.path);
	coop_cgroup_clear(&group);
}

/* Works until the processor was its own for so long, however long that takes: many times what two
 * hundredths of a core are in one period of the kernel's. */
static int burn(void)
{
	struct timespec used = {0};

	while (used.tv_sec == 0 && used.tv_nsec < 15000000)
		(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return 0;
}

/* Whether what works in `group` is held back, there or in `above`. On a loaded machine it may have
 * less than its share anyway and never meet the limit: asked only of shares that a single turn on
 * the processor exceeds. */
static bool held_back(const struct coop_cgroup *group, const struct coop_cgroup *above)
{
	const struct coop_cgroup *both[] = {group, above};
	struct coop_cgroup_facts facts;
	uint64_t before = 0, after = 0;

	for (size_t i = 0; i < 2; i++) {
		coop_cgroup_facts(&groups, both[i], &facts);
		before += facts.cpu_throttled_ns;
	}
	assert_int_equal(status_of(start_in(group, burn)), 0);
	for (size_t i = 0; i < 2; i++) {
		coop_cgroup_facts(&groups, both[i], &facts);
		after += facts.cpu_throttled_ns;
	}
	return after > before;
}

/* The thousandths of a core that the kernel gives a group. */
static int64_t share_of(const struct coop_cgroup *group)
{
	bool second = groups.version[COOP_CG_CPU] == 2;
	char folder[COOP_CG_PATH_MAX], text[64], length[32];
	char *period = text;

	assert_int_equal(coop_cgroup_folder(&groups, group, COOP_CG_CPU, folder), 0);
	assert_true(coop_cgfile_read(folder, second ? "cpu.max" : "cpu.cfs_quota_us", text,
				     sizeof text) > 0);
	int64_t quota = strtoll(text, &period, 10);
	if (second)
		return quota * 1000 / strtoll(period, NULL, 10);
	assert_true(coop_cgfile_read(folder, "cpu.cfs_period_us", length, sizeof length) > 0);
	return quota * 1000 / strtoll(length, NULL, 10);
}

static void cpu_is_limited(void **state)
{
	static const struct coop_sandbox_limits limits[] = {
		{.cpu_quota_millis = 200},
		{.cpu_quota_millis = 64000},
		{.cpu_quota_millis = 20},
		/* Below what the kernel takes for a period of the usual length. */
		{.cpu_quota_millis = 1},
	};

	if (refused(COOP_CG_CPU, &limits[0], "cpu_quota"))
		return;
	struct coop_cgroup group = make_group("p-1", &limits[0], false);
	for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
		assert_int_equal(coop_cgroup_limit(&groups, &group, &limits[i]), 0);
		assert_int_equal(share_of(&group), limits[i].cpu_quota_millis);
		/* The control is a share that one process cannot use up. */
		if (i == 1 || i == 2)
			assert_int_equal(held_back(&group, &group), i == 2);
	}
	remove_group(&group);
}

/* Counts for as long as it may run; a child of it counts too. */
static volatile uint64_t *counters;

static int count_twice(void)
{
	volatile uint64_t *own = fork() == 0 ? &counters[1] : &counters[0];

	while (getppid() != 0) {
		(*own)++;
		pause_ms(1);
	}
	return 0;
}

static bool counts(void)
{
	for (int i = 0; i < 400; i++) {
		uint64_t first = counters[0], second = counters[1];
		pause_ms(20);
		if (counters[0] != first && counters[1] != second)
			return true;
	}
	return false;
}

static void freezes_and_thaws(void **state)
{
	static const struct coop_sandbox_limits none;

	counters = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(counters != MAP_FAILED);
	struct coop_cgroup group = make_group("a-x/p-1", &none, true);
	if (groups.version[COOP_CG_FREEZER] == 0) {
		assert_int_equal(group.used, 0);
		assert_int_equal(coop_cgroup_freeze(&groups, &group, true), -ENOTSUP);
		remove_group(&group);
		return;
	}
	pid_t pid = start_in(&group, count_twice);
	for (int round = 0; round < 3; round++) {
		assert_true(counts());
		assert_int_equal(coop_cgroup_freeze(&groups, &group, true), 0);
		uint64_t first = counters[0], second = counters[1];
		pause_ms(100);
		assert_int_equal(counters[0], first);
		assert_int_equal(counters[1], second);
		assert_int_equal(coop_cgroup_freeze(&groups, &group, false), 0);
	}
	assert_true(counts());
	/* Frozen ones can be killed. */
	assert_int_equal(coop_cgroup_freeze(&groups, &group, true), 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	int r = coop_cgroup_kill(&groups, &group);
	assert_true(groups.unified ? r == 0 : r == -ENOTSUP);
	assert_int_equal(WTERMSIG(status_of(pid)), SIGKILL);
	if (r == 0)
		remove_group(&group);
	coop_cgroup_clear(&group);
}

/* The same host with the tree of version 2 left out. */
static void freezes_by_version_1(void **state)
{
	char *mountinfo = coop_cgfile_read_all("/proc/self/mountinfo");
	char *own = coop_cgfile_read_all("/proc/self/cgroup");

	assert_non_null(mountinfo);
	assert_non_null(own);
	for (char *at = mountinfo; (at = strstr(at, " cgroup2 "));)
		at[7] = 'x';
	coop_cgroups_free(&groups);
	coop_cgroups_init_from(&groups, keeper_name, mountinfo, own);
	free(mountinfo);
	free(own);
	assert_null(groups.unified);
	for (unsigned i = 0; i < COOP_CG_COUNT; i++)
		assert_in_range(groups.version[i], 0, 1);
	freezes_and_thaws(state);
}

/* One that was started without a group can be brought in. */
static void moves_in(void **state)
{
	static const struct coop_sandbox_limits none;

	if (groups.version[COOP_CG_FREEZER] == 0)
		return;
	counters = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		for (;;) {
			counters[0]++;
			counters[1]++;
			pause_ms(1);
		}
	}
	assert_true(counts());
	struct coop_cgroup group = make_group("p-1", &none, true);
	assert_int_equal(coop_cgroup_move(&groups, &group, pid), 0);
	assert_int_equal(coop_cgroup_freeze(&groups, &group, true), 0);
	uint64_t before = counters[0];
	pause_ms(100);
	assert_int_equal(counters[0], before);
	assert_int_equal(coop_cgroup_freeze(&groups, &group, false), 0);
	assert_true(counts());
	assert_int_equal(kill(pid, SIGKILL), 0);
	(void)status_of(pid);
	assert_int_equal(coop_cgroup_move(&groups, &group, pid), -ESRCH);
	remove_group(&group);
}

static int escape_and_sleep(void)
{
	(void)signal(SIGTERM, SIG_IGN);
	for (int i = 0; i < 20; i++) {
		if (fork() == 0) {
			(void)setsid();
			if (fork() == 0)
				(void)sleep_long();
			_exit(0);
		}
	}
	return sleep_long();
}

static void kills_the_tree(void **state)
{
	static const struct coop_sandbox_limits none;

	if (!groups.unified || groups.version[COOP_CG_FREEZER] != 2)
		return;
	for (int i = 0; i < 5; i++) {
		struct coop_cgroup group = make_group("p-1", &none, true);
		pid_t pid = start_in(&group, escape_and_sleep);
		assert_int_equal(coop_cgroup_remove(&groups, &group), -EBUSY);
		pause_ms(10 * i);
		assert_int_equal(coop_cgroup_kill(&groups, &group), 0);
		assert_int_equal(WTERMSIG(status_of(pid)), SIGKILL);
		/* Removing works when nobody is left. */
		remove_group(&group);
	}
	assert_int_equal(coop_cgroups_count(&groups), 0);
}

/* What is below counts for those above, and their limit holds for it, also without one of its
 * own. */
static void totals_hold_below(void **state)
{
	struct coop_sandbox_limits limits = {.memory_bytes = 64 * MIB};
	static const struct coop_sandbox_limits none;
	struct coop_cgroup_facts facts;

	if (refused(COOP_CG_MEMORY, &limits, "memory_bytes"))
		return;
	struct coop_cgroup agent = make_group("a-x", &limits, false);
	struct coop_cgroup one = make_group("a-x/a-y/p-1", &none, false);
	struct coop_cgroup other = make_group("p-2", &none, false);
	assert_true(one.used & COOP_CG_BIT(COOP_CG_MEMORY));
	assert_false(other.used & COOP_CG_BIT(COOP_CG_MEMORY));
	assert_int_equal(status_of(start_in(&one, touch_little)), 0);
	assert_int_equal(WTERMSIG(status_of(start_in(&one, touch_much))), SIGKILL);
	assert_int_equal(status_of(start_in(&other, touch_much)), 0);
	coop_cgroup_facts(&groups, &one, &facts);
	assert_true(facts.oom_kills >= 1);
	coop_cgroup_facts(&groups, &agent, &facts);
	assert_in_range(facts.memory_peak, 48 * MIB, 65 * MIB);
	assert_int_equal(coop_cgroup_remove(&groups, &agent), -EBUSY);
	/* a-y was only made along the way and goes; a-x has a limit and stays. */
	remove_group(&one);
	struct coop_cgroup again = make_group("a-x/p-3", &none, false);
	assert_true(again.used & COOP_CG_BIT(COOP_CG_MEMORY));
	remove_group(&again);
	remove_group(&agent);
	remove_group(&other);
	assert_int_equal(coop_cgroups_count(&groups), 0);
}

static void limits_change(void **state)
{
	static const struct coop_sandbox_limits steps[] = {
		{.memory_bytes = 64 * MIB, .cpu_quota_millis = 500, .max_pids = 10},
		{.memory_bytes = 512 * MIB, .cpu_quota_millis = 1500, .max_pids = 100},
		{.memory_bytes = 32 * MIB, .cpu_quota_millis = 20, .max_pids = 5},
		{0},
		{.memory_bytes = 128 * MIB, .cpu_quota_millis = 300, .max_pids = 50},
	};

	for (unsigned i = 0; i < COOP_CG_FREEZER; i++) {
		if (groups.version[i] == 0) {
			struct coop_cgroup none = {.fd = -1};
			assert_int_equal(coop_cgroup_limit(&groups, &none, &steps[0]), -ENOTSUP);
			return;
		}
	}
	struct coop_cgroup agent = make_group("a-x", &steps[1], false);
	struct coop_cgroup group = make_group("a-x/p-1", &steps[0], false);
	for (size_t i = 1; i < 5; i++) {
		assert_int_equal(coop_cgroup_limit(&groups, &agent, &steps[3]), 0);
		assert_int_equal(coop_cgroup_limit(&groups, &group, &steps[i]), 0);
		int status = status_of(start_in(&group, touch_much));
		assert_int_equal(WIFSIGNALED(status), i == 2 || i == 4);
	}
	/* Less for the whole than for a part of it: the part has no more than the whole, then. */
	assert_int_equal(coop_cgroup_limit(&groups, &agent, &steps[2]), 0);
	assert_true(WIFSIGNALED(status_of(start_in(&group, touch_much))));
	assert_true(held_back(&group, &agent));
	/* And one that asks for more than the whole, which holds. */
	struct coop_cgroup greedy = make_group("a-x/p-3", &steps[1], false);
	assert_true(held_back(&greedy, &agent));
	remove_group(&greedy);
	/* One that had none gets one. */
	struct coop_cgroup late = make_group("p-2", &steps[3], false);
	assert_int_equal(late.used, 0);
	assert_int_equal(coop_cgroup_limit(&groups, &late, &steps[0]), 0);
	assert_true(WIFSIGNALED(status_of(start_in(&late, touch_much))));
	remove_group(&late);
	remove_group(&group);
	remove_group(&agent);
}

static void leftovers_go(void **state)
{
	static const struct coop_sandbox_limits limits = {.max_pids = 50};
	struct coop_cgroups earlier = groups;

	if (groups.version[COOP_CG_PIDS] == 0)
		return;
	struct coop_cgroup group = make_group("a-x/p-1", &limits, true);
	pid_t pid = start_in(&group, escape_and_sleep);
	if (groups.version[COOP_CG_FREEZER] != 0)
		assert_int_equal(coop_cgroup_freeze(&groups, &group, true), 0);
	assert_true(coop_cgroups_count(&groups) >= 2);
	/* The next keeper of the name finds what this one, which was killed, left. */
	coop_cgroups_clean(keeper_name);
	assert_int_equal(coop_cgroups_count(&groups), 0);
	coop_cgroups_init(&groups, keeper_name);
	assert_int_equal(WTERMSIG(status_of(pid)), SIGKILL);
	assert_int_equal(coop_cgroups_count(&groups), 0);
	assert_int_equal(groups.version[COOP_CG_PIDS], earlier.version[COOP_CG_PIDS]);
	coop_cgroup_clear(&group);
	free(earlier.unified);
	for (unsigned i = 0; i < COOP_CG_COUNT; i++)
		free(earlier.base[i]);
}

static void bad_names(void **state)
{
	static const struct coop_sandbox_limits none;
	static const char *const names[] = {"", "/a", "a/", "a//b", "../a", "a/..", ".", "a\nb"};
	struct coop_cgroup group = {.fd = -1};
	struct coop_err err;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		assert_true(coop_cgroup_make(&groups, names[i], &none, true, &group, &err) < 0);
	struct coop_cgroups other;
	coop_cgroups_init(&other, "a/b");
	for (unsigned i = 0; i < COOP_CG_COUNT; i++)
		assert_int_equal(other.version[i], 0);
	coop_cgroups_free(&other);
}

/* Every allocation fails once: nothing is left, nothing crashes, what is missing is told. */
static void no_memory(void **state)
{
	static const struct coop_sandbox_limits limits = {
		.memory_bytes = 64 * MIB, .cpu_quota_millis = 500, .max_pids = 10};
	char fault[32];
	bool complete = false;

	coop_cgroups_free(&groups);
	for (int i = 1; !complete && i < 60; i++) {
		struct coop_cgroup group = {.fd = -1};
		struct coop_err err;
		unsigned long failed = coop_mem_failures();
		(void)snprintf(fault, sizeof fault, "alloc:%d", i);
		(void)setenv("COOP_FAULT", fault, 1);
		coop_mem_init();
		coop_cgroups_init(&groups, keeper_name);
		int r = coop_cgroup_make(&groups, "a-x/p-1", &limits, true, &group, &err);
		complete = coop_mem_failures() == failed;
		(void)unsetenv("COOP_FAULT");
		coop_mem_init();
		for (unsigned j = 0; j < COOP_CG_COUNT; j++)
			assert_true(groups.version[j] != 0 || groups.why[j][0]);
		if (r == 0)
			remove_group(&group);
		assert_int_equal(coop_cgroups_count(&groups), 0);
		coop_cgroups_free(&groups);
	}
	assert_true(complete);
}

/* Somebody to whom no group was given. */
static int as_nobody(void)
{
	static const struct coop_sandbox_limits limits = {.memory_bytes = 64 * MIB};
	static const struct coop_sandbox_limits none;
	struct coop_cgroup group = {.fd = -1};
	struct coop_cgroups mine;
	struct coop_err err;

	if (geteuid() == 0 && (setgid(65534) < 0 || setuid(65534) < 0))
		return 1;
	coop_cgroups_init(&mine, "test-nobody");
	for (unsigned i = 0; i < COOP_CG_COUNT; i++) {
		if (mine.version[i] == 0 && !mine.why[i][0])
			return 2;
		if (mine.version[i] != 0 && !mine.base[i])
			return 3;
	}
	if (mine.version[COOP_CG_MEMORY] == 0) {
		if (coop_cgroup_make(&mine, "p-1", &limits, true, &group, &err) >= 0)
			return 4;
		if (err.code != COOP_SANDBOX_UNAVAILABLE || !strstr(err.details, "memory_bytes"))
			return 5;
	}
	if (coop_cgroup_make(&mine, "p-1", &none, true, &group, &err) < 0)
		return 6;
	if (coop_cgroup_remove(&mine, &group) < 0)
		return 7;
	coop_cgroups_free(&mine);
	return 0;
}

static void ordinary_user(void **state)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(as_nobody());
	assert_int_equal(status_of(pid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(memory_is_limited, groups_make, groups_remove),
		cmocka_unit_test_setup_teardown(pids_are_limited, groups_make, groups_remove),
		cmocka_unit_test_setup_teardown(cpu_is_limited, groups_make, groups_remove),
		cmocka_unit_test_setup_teardown(freezes_and_thaws, groups_make, groups_remove),
		cmocka_unit_test_setup_teardown(freezes_by_version_1, groups_make, groups_remove),
		cmocka_unit_test_setup_teardown(moves_in, groups_make, groups_remove),
		cmocka_unit_test_setup_teardown(kills_the_tree, groups_make, groups_remove),
		cmocka_unit_test_setup_teardown(totals_hold_below, groups_make, groups_remove),
		cmocka_unit_test_setup_teardown(limits_change, groups_make, groups_remove),
		cmocka_unit_test_setup_teardown(leftovers_go, groups_make, groups_remove),
		cmocka_unit_test_setup_teardown(bad_names, groups_make, groups_remove),
		cmocka_unit_test_setup_teardown(no_memory, groups_make, groups_remove),
		cmocka_unit_test(ordinary_user),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
