/* Where groups can be: the parsers on texts of hosts of every kind, and on a host with version 2
 * the places in which a keeper may find itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "cgrouping.h"
#include "sandbox/cgroup/cgroup_file.h"
#include "sandbox/cgroup/cgroup_find.h"

#define MOUNT(point, root, rest) "31 23 0:28 " root " " point " rw,relatime shared:5 - " rest "\n"

static void check_place(const struct coop_cgroup_place *place, const char *folder, size_t top)
{
	if (!folder) {
		assert_null(place->folder);
		assert_true(place->why[0]);
		return;
	}
	assert_non_null(place->folder);
	assert_string_equal(place->folder, folder);
	assert_int_equal(place->top, top);
	assert_string_equal(place->why, "");
}

static void only_version_2(void **state)
{
	struct coop_cgroup_places places;
	const char *mounts = "22 1 254:0 / / rw - ext4 /dev/vda rw\n" MOUNT(
		"/sys/fs/cgroup", "/", "cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot");

	assert_int_equal(coop_cgroup_find(mounts,
					  "0::/user.slice/user-1000.slice/session-2.scope\n",
					  &places),
			 0);
	check_place(&places.unified, "/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope",
		    14);
	for (unsigned i = 0; i < COOP_CG_COUNT; i++)
		check_place(&places.v1[i], NULL, 0);
	coop_cgroup_places_clear(&places);
	assert_null(places.unified.folder);
	/* The root of the tree, or of a namespace. */
	assert_int_equal(coop_cgroup_find(mounts, "0::/\n", &places), 0);
	check_place(&places.unified, "/sys/fs/cgroup", 14);
	coop_cgroup_places_clear(&places);
}

static void both_versions(void **state)
{
	struct coop_cgroup_places places;
	const char *mounts = MOUNT("/sys/fs/cgroup", "/", "tmpfs tmpfs rw,mode=755")
		MOUNT("/sys/fs/cgroup/cpu,cpuacct", "/", "cgroup cgroup rw,cpu,cpuacct") MOUNT(
			"/sys/fs/cgroup/memory", "/", "cgroup cgroup rw,memory")
			MOUNT("/sys/fs/cgroup/pids", "/", "cgroup cgroup rw,pids") MOUNT(
				"/sys/fs/cgroup/systemd", "/", "cgroup cgroup rw,name=systemd")
				MOUNT("/sys/fs/cgroup/unified", "/", "cgroup2 cgroup2 rw");
	const char *own = "12:pids:/x\n11:memory:/process/a\n4:cpu,cpuacct:/\n3:freezer:/\n"
			  "1:name=systemd:/y\n0::/\n";

	assert_int_equal(coop_cgroup_find(mounts, own, &places), 0);
	check_place(&places.unified, "/sys/fs/cgroup/unified", 22);
	check_place(&places.v1[COOP_CG_MEMORY], "/sys/fs/cgroup/memory/process/a", 21);
	check_place(&places.v1[COOP_CG_CPU], "/sys/fs/cgroup/cpu,cpuacct", 26);
	check_place(&places.v1[COOP_CG_PIDS], "/sys/fs/cgroup/pids/x", 19);
	check_place(&places.v1[COOP_CG_FREEZER], NULL, 0);
	assert_string_equal(places.v1[COOP_CG_FREEZER].why, "not mounted");
	coop_cgroup_places_clear(&places);
}

/* Containers see a part of the tree, under names of the host or of their own. */
static void containers(void **state)
{
	struct coop_cgroup_places places;

	assert_int_equal(coop_cgroup_find(MOUNT("/c", "/docker/ab", "cgroup cgroup rw,memory"),
					  "5:memory:/docker/ab/x\n0::/\n", &places),
			 0);
	check_place(&places.v1[COOP_CG_MEMORY], "/c/x", 2);
	coop_cgroup_places_clear(&places);
	assert_int_equal(coop_cgroup_find(MOUNT("/c", "/docker/ab", "cgroup cgroup rw,memory"),
					  "5:memory:/docker/ab\n", &places),
			 0);
	check_place(&places.v1[COOP_CG_MEMORY], "/c", 2);
	coop_cgroup_places_clear(&places);
	assert_int_equal(coop_cgroup_find(MOUNT("/c", "/docker/ab", "cgroup cgroup rw,memory"),
					  "5:memory:/docker/abc\n", &places),
			 0);
	check_place(&places.v1[COOP_CG_MEMORY], NULL, 0);
	/* A group above the namespace's root: reachable only if the mount begins at the same
	 * one. */
	assert_int_equal(
		coop_cgroup_find(MOUNT("/c", "/", "cgroup2 none rw"), "0::/../x\n", &places), 0);
	check_place(&places.unified, NULL, 0);
	assert_int_equal(
		coop_cgroup_find(MOUNT("/c", "/..", "cgroup2 none rw"), "0::/../x\n", &places), 0);
	check_place(&places.unified, "/c/x", 2);
	coop_cgroup_places_clear(&places);
	assert_int_equal(coop_cgroup_find(MOUNT("/c", "/..", "cgroup2 none rw"), "0::/\n", &places),
			 0);
	check_place(&places.unified, NULL, 0);
	assert_int_equal(
		coop_cgroup_find(MOUNT("/c", "/..", "cgroup2 none rw"), "0::/../../x\n", &places),
		0);
	check_place(&places.unified, NULL, 0);
}

static void one_that_can_be_written(void **state)
{
	struct coop_cgroup_places places;
	const char *readonly = "31 23 0:28 / /ro ro,relatime - cgroup2 cgroup2 rw\n";
	char both[256];

	assert_int_equal(coop_cgroup_find(readonly, "0::/a\n", &places), 0);
	check_place(&places.unified, "/ro/a", 3);
	assert_true(places.unified.readonly);
	coop_cgroup_places_clear(&places);
	(void)snprintf(both, sizeof both, "%s%s", readonly,
		       MOUNT("/with\\040blank", "/", "cgroup2 cgroup2 rw"));
	assert_int_equal(coop_cgroup_find(both, "0::/a b\n", &places), 0);
	check_place(&places.unified, "/with blank/a b", 11);
	assert_false(places.unified.readonly);
	coop_cgroup_places_clear(&places);
}

static void nonsense(void **state)
{
	static const char *const texts[] = {
		"",
		"\n\n",
		"0::",
		"0",
		"31",
		"31 23 0:28 / /c rw",
		"31 23 0:28 / /c rw -",
		"31 23 0:28 / /c rw - cgroup2",
		"31 23 0:28 / /c\\0 rw - cgroup2 x rw",
		"::::\n:memory\n0::relative\n",
	};
	struct coop_cgroup_places places;

	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		for (size_t j = 0; j < sizeof texts / sizeof *texts; j++) {
			assert_int_equal(coop_cgroup_find(texts[i], texts[j], &places), 0);
			assert_null(places.unified.folder);
			coop_cgroup_places_clear(&places);
		}
	}
	assert_int_equal(coop_cgfile_number("oom 3\noom_kill 7\n", "oom_kill"), 7);
	assert_int_equal(coop_cgfile_number("oom_kill_x 3\n", "oom_kill"), 0);
	assert_int_equal(coop_cgfile_number("oom_kill 3", "oom_kill"), 3);
	assert_int_equal(coop_cgfile_number("", "oom_kill"), 0);
	assert_int_equal(coop_cgfile_number("42\n", NULL), 42);
	assert_int_equal(coop_cgfile_number("max\n", NULL), 0);
}

/* From here on: a group of version 2 with controllers is made, entered by a fork, and looked for
 * groups there. */
static char place[COOP_CG_PATH_MAX];

static const char *below_place(const char *name)
{
	static char path[COOP_CG_PATH_MAX + 64];

	(void)snprintf(path, sizeof path, "%s/%s", place, name);
	return path;
}

/* Groups of `groups` are the way to one: false where there are no controllers of version 2. */
static bool make_place(void)
{
	(void)groups_make(NULL);
	if (groups.version[COOP_CG_MEMORY] != 2 || groups.version[COOP_CG_PIDS] != 2) {
		(void)groups_remove(NULL);
		return false;
	}
	(void)snprintf(place, sizeof place, "%s/place", groups.unified);
	assert_int_equal(mkdir(place, 0755), 0);
	return true;
}

static void run_in_place(const char *name, int (*run)(void))
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (coop_cgfile_write(name ? below_place(name) : place, "cgroup.procs", "0") < 0)
			_exit(90);
		_exit(run());
	}
	int status = status_of(pid);
	if (status != 0)
		print_error("status %#x\n", (unsigned)status);
	assert_int_equal(status, 0);
	(void)groups_remove(NULL);
}

/* All four work, below a folder of that name in `place`, and nothing is left. 0 if so. */
static int works_in(const char *folder, bool moved)
{
	static const struct coop_sandbox_limits limits = {
		.memory_bytes = 64 * MIB, .cpu_quota_millis = 500, .max_pids = 10};
	struct coop_cgroup group = {.fd = -1};
	char expected[COOP_CG_PATH_MAX + 64], text[16];
	struct coop_cgroups mine;
	struct coop_err err;

	coop_cgroups_init(&mine, "inner");
	for (unsigned i = 0; i < COOP_CG_COUNT; i++) {
		if (mine.version[i] != 2)
			return 10 + (int)i;
	}
	(void)snprintf(expected, sizeof expected, "%s%s/coop-inner", place, folder);
	if (strcmp(mine.unified, expected) != 0)
		return 20;
	if (mine.moved != moved)
		return 21;
	if (coop_cgroup_make(&mine, "a-x/p-1", &limits, true, &group, &err) < 0)
		return 22;
	pid_t pid = fork_into(group.fd);
	if (pid == 0)
		_exit(0);
	int status;
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
		return 23;
	for (int i = 0; coop_cgroup_remove(&mine, &group) == -EBUSY && i < 100; i++)
		pause_ms(5);
	coop_cgroups_free(&mine);
	if (access(expected, F_OK) == 0)
		return 24;
	/* The keeper is where it was, and nothing is turned on that was not. */
	if (moved && (coop_cgfile_read(place, "cgroup.subtree_control", text, sizeof text) < 0 ||
		      strspn(text, "\n") != strlen(text)))
		return 25;
	return 0;
}

static int works_here_by_moving(void)
{
	return works_in("", true);
}

/* Only the keeper is in its group, as a service with a delegated group has it. */
static void alone_in_a_group(void **state)
{
	if (make_place())
		run_in_place(NULL, works_here_by_moving);
}

/* Others are in the group: one that cannot be asked to move. */
static pid_t start_stranger(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)execl("/bin/sleep", "sleep", "1000", NULL);
		_exit(127);
	}
	/* It counts as a stranger once it is another program. */
	for (int i = 0; i < 400; i++) {
		char path[64], target[256] = "";
		(void)snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
		if (readlink(path, target, sizeof target - 1) > 0 && !strstr(target, "test_"))
			return pid;
		pause_ms(5);
	}
	return -1;
}

static int works_above(void)
{
	pid_t stranger = start_stranger();
	int r = stranger < 0 ? 30 : works_in("", false);

	(void)kill(stranger, SIGKILL);
	return r;
}

static void among_others(void **state)
{
	if (!make_place())
		return;
	assert_int_equal(mkdir(below_place("inner"), 0755), 0);
	run_in_place("inner", works_above);
}

/* The limit of the group that it shares would be left behind. */
static int keeps_its_limit(void)
{
	static const struct coop_sandbox_limits limits = {.memory_bytes = 64 * MIB};
	struct coop_cgroup group = {.fd = -1};
	struct coop_cgroups mine;
	struct coop_err err;
	pid_t stranger = start_stranger();
	int r = 0;

	coop_cgroups_init(&mine, "inner");
	if (mine.version[COOP_CG_MEMORY] != 0 ||
	    !strstr(mine.why[COOP_CG_MEMORY], "holds processes"))
		r = 31;
	else if (mine.error != EBUSY)
		r = 32;
	else if (coop_cgroup_make(&mine, "p-1", &limits, false, &group, &err) >= 0)
		r = 33;
	/* To kill and to freeze needs no controller. */
	else if (!mine.unified || mine.version[COOP_CG_FREEZER] != 2)
		r = 34;
	coop_cgroups_free(&mine);
	(void)kill(stranger, SIGKILL);
	return r;
}

static void among_others_with_a_limit(void **state)
{
	if (!make_place())
		return;
	assert_int_equal(mkdir(below_place("inner"), 0755), 0);
	assert_int_equal(coop_cgfile_write(place, "cgroup.subtree_control", "+memory +pids"), 0);
	assert_int_equal(coop_cgfile_write(below_place("inner"), "memory.max", "256M"), 0);
	run_in_place("inner", keeps_its_limit);
}

/* A part of the tree that belongs to a user, as the service manager gives it. */
static int works_as_user(void)
{
	if (setgid(65534) < 0 || setuid(65534) < 0)
		return 91;
	/* Who changed its ids is dumpable no more, and could not look at itself. */
	if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
		return 92;
	return works_in("", true);
}

static void delegated_to_a_user(void **state)
{
	if (!make_place())
		return;
	assert_int_equal(chown(place, 65534, 65534), 0);
	assert_int_equal(chown(below_place("cgroup.procs"), 65534, 65534), 0);
	assert_int_equal(chown(below_place("cgroup.subtree_control"), 65534, 65534), 0);
	run_in_place(NULL, works_as_user);
}

/* A launcher without rights, in the place that is its own, clones into the groups of a keeper with
 * all of them. */
static int launch(int door, int cgroup)
{
	int status;

	if (door >= 0 && write(door, "0", 1) != 1)
		return 40;
	if (setgid(65534) < 0 || setuid(65534) < 0)
		return 41;
	pid_t pid = fork_into(cgroup);
	if (pid < 0)
		return errno == EACCES ? 43 : 42;
	if (pid == 0)
		_exit(0);
	return waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 44;
}

static int launch_in_child(int door, int cgroup)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(launch(door, cgroup));
	int status = status_of(pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void launcher_without_rights(void **state)
{
	static const struct coop_sandbox_limits none;

	(void)groups_make(NULL);
	int door = coop_cgroups_launcher(&groups);
	if (geteuid() != 0 || !groups.unified) {
		assert_true(geteuid() != 0 || door == -ENOTSUP);
		(void)groups_remove(NULL);
		return;
	}
	assert_true(door >= 0);
	struct coop_cgroup before = make_group("p-1", &none, true);
	assert_int_equal(launch_in_child(door, before.fd), 43);
	assert_int_equal(coop_cgroups_delegate(&groups, 65534, 65534), 0);
	struct coop_cgroup group = make_group("a-x/a-y/p-2", &none, true);
	assert_int_equal(launch_in_child(door, group.fd), 0);
	/* Both are needed: the place, and the right to the group itself. */
	assert_int_equal(launch_in_child(-1, group.fd), 43);
	assert_int_equal(launch_in_child(door, before.fd), 43);
	assert_int_equal(coop_cgroups_count(&groups), 4);
	remove_group(&before);
	remove_group(&group);
	assert_int_equal(coop_cgroups_count(&groups), 0);
	(void)close(door);
	(void)groups_remove(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_version_2),
		cmocka_unit_test(both_versions),
		cmocka_unit_test(containers),
		cmocka_unit_test(one_that_can_be_written),
		cmocka_unit_test(nonsense),
		cmocka_unit_test(alone_in_a_group),
		cmocka_unit_test(among_others),
		cmocka_unit_test(among_others_with_a_limit),
		cmocka_unit_test(delegated_to_a_user),
		cmocka_unit_test(launcher_without_rights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
