/* Landlock, in children: what a rule allows works, all else is EACCES, whichever ABI of those that
 * the kernel knows is asked for. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>

#include <cmocka.h>

#include "filtered.h"
#include "folder.h"
#include "sandbox/child/landlock.h"

/* Of the test that runs; children see a copy. */
static uint32_t abi;

static void need_landlock(void)
{
	abi = coop_landlock_abi();
	if (!abi)
		skip();
}

/* Reading all, writing in `work` only. */
static int confine(void)
{
	int ruleset = coop_landlock_open(abi, 3);

	EXPECT(ruleset >= 0);
	EXPECT(coop_landlock_allow(ruleset, abi, "/", COOP_ACCESS_READ) == 0);
	EXPECT(coop_landlock_allow(ruleset, abi, "/dev", COOP_ACCESS_DEVICES) == 0);
	EXPECT(coop_landlock_allow(ruleset, abi, folder_path("work"), COOP_ACCESS_WRITE) == 0);
	EXPECT(coop_landlock_allow(ruleset, abi, folder_path("one"), COOP_ACCESS_WRITE) == 0);
	EXPECT(coop_landlock_allow(ruleset, abi, folder_path("missing"), COOP_ACCESS_WRITE) == 0);
	EXPECT(coop_landlock_allow(ruleset, abi, folder_path("one/below"), COOP_ACCESS_WRITE) == 0);
	EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	EXPECT(coop_landlock_enforce(ruleset) == 0 && close(ruleset) == 0);
	return 0;
}

static int write_to(const char *name, int flags)
{
	int fd = open(folder_path(name), O_WRONLY | O_CLOEXEC | flags, 0644);

	if (fd < 0)
		return -1;
	int r = write(fd, "x", 1) == 1 ? 0 : -1;
	(void)close(fd);
	return r;
}

static int work_inside(void)
{
	EXPECT(write_to("work/file", O_CREAT | O_TRUNC) == 0);
	EXPECT(truncate(folder_path("work/file"), 0) == 0);
	EXPECT(mkdir(folder_path("work/a"), 0755) == 0 && mkdir(folder_path("work/b"), 0755) == 0);
	EXPECT(rename(folder_path("work/file"), folder_path("work/a/file")) == 0);
	EXPECT(link(folder_path("work/a/file"), folder_path("work/b/hard")) == 0);
	EXPECT(symlink("x", folder_path("work/link")) == 0);
	EXPECT(mkfifo(folder_path("work/pipe"), 0600) == 0);
	EXPECT(unlink(folder_path("work/a/file")) == 0 && rmdir(folder_path("work/a")) == 0);
	EXPECT(write_to("one", O_TRUNC) == 0);
	return 0;
}

static int attack_outside(void)
{
	EXPECT_ERROR(write_to("file", O_CREAT), EACCES);
	EXPECT_ERROR(write_to("old", 0), EACCES);
	EXPECT_ERROR(write_to("work/out", 0), EACCES);
	EXPECT_ERROR(mkdir(folder_path("new"), 0755), EACCES);
	EXPECT_ERROR(unlink(folder_path("old")), EACCES);
	EXPECT_ERROR(rename(folder_path("old"), folder_path("work/old")), EACCES);
	errno = 0;
	EXPECT(rename(folder_path("work/b/hard"), folder_path("hard")) == -1 &&
	       (errno == EACCES || errno == EXDEV));
	EXPECT_ERROR(mkfifo(folder_path("pipe"), 0600), EACCES);
	EXPECT_ERROR(symlink("x", folder_path("link")), EACCES);
	if (abi >= 3)
		EXPECT_ERROR(truncate(folder_path("old"), 0), EACCES);
	return 0;
}

/* Never, inside neither. What a user gets is the kernel's own EPERM. */
static int make_devices(void)
{
	errno = 0;
	EXPECT(mknod(folder_path("work/null"), S_IFCHR | 0600, 0x103) == -1);
	EXPECT(errno == EACCES || errno == EPERM);
	errno = 0;
	EXPECT(mknod(folder_path("work/disk"), S_IFBLK | 0600, 0x800) == -1);
	EXPECT(errno == EACCES || errno == EPERM);
	return 0;
}

static int use_devices_and_read(void)
{
	char byte;

	int fd = open("/dev/null", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	EXPECT(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0);
	fd = open(folder_path("old"), O_RDONLY | O_CLOEXEC);
	EXPECT(fd >= 0 && read(fd, &byte, 1) == 1 && close(fd) == 0);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	EXPECT(fd >= 0 && close(fd) == 0);
	EXPECT(filtered_shell("exec true") == 0);
	return 0;
}

static int all_of_it(void)
{
	return confine() || work_inside() || attack_outside() || make_devices() ||
	       use_devices_and_read();
}

static void prepare(void)
{
	assert_int_equal(mkdir(folder_path("work"), 0755), 0);
	folder_write("old", "old", 3, 0644);
	folder_write("one", "one", 3, 0644);
	assert_int_equal(symlink("../old", folder_path("work/out")), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(folder_path("work"), 65534, 65534), 0);
		assert_int_equal(chown(folder_path("old"), 65534, 65534), 0);
		assert_int_equal(chown(folder_path("one"), 65534, 65534), 0);
	}
}

static int in_child(int (*work)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(work());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void confines(void **state)
{
	need_landlock();
	prepare();
	assert_int_equal(in_child(all_of_it), 0);
	assert_false(folder_has("file") || folder_has("new") || folder_has("hard"));
}

static void confines_a_user(void **state)
{
	need_landlock();
	prepare();
	folder_as_user(all_of_it);
	assert_true(folder_has("old"));
}

/* On a kernel that knows more: the ruleset is the older one. */
static void confines_with_older_abi(void **state)
{
	need_landlock();
	for (uint32_t highest = abi--; abi >= 2 && abi < highest; abi--) {
		prepare();
		assert_int_equal(in_child(all_of_it), 0);
		assert_int_equal(folder_remove(NULL), 0);
		assert_int_equal(folder_make(NULL), 0);
	}
}

/* A prepared process is under the filter, without openat2, when it gets its rules. */
static void confines_under_the_filter(void **state)
{
	need_landlock();
	prepare();
	assert_int_equal(filtered_run(COOP_FILTER_STANDARD, false, all_of_it), 0);
}

/* Rules by way of links allow nothing: neither what the link is, nor what it leads to. */
static int follow_links(void)
{
	char path[300];
	int ruleset = coop_landlock_open(abi, 0);

	EXPECT(ruleset >= 0);
	EXPECT(coop_landlock_allow(ruleset, abi, folder_path("to-work"), COOP_ACCESS_WRITE) == 0);
	EXPECT(coop_landlock_allow(ruleset, abi, folder_path("to-work/b"), COOP_ACCESS_WRITE) == 0);
	(void)snprintf(path, sizeof path, "/proc/self/root%s", folder_path("work"));
	EXPECT(coop_landlock_allow(ruleset, abi, path, COOP_ACCESS_WRITE) == 0);
	memset(path, 'n', sizeof path - 1);
	path[0] = '/';
	path[sizeof path - 1] = 0;
	EXPECT(coop_landlock_allow(ruleset, abi, path, COOP_ACCESS_WRITE) == -ENAMETOOLONG);
	EXPECT(coop_landlock_allow(-1, abi, "/", COOP_ACCESS_READ) == -EBADF);
	EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && coop_landlock_enforce(ruleset) == 0);
	EXPECT_ERROR(write_to("work/file", O_CREAT), EACCES);
	EXPECT_ERROR(write_to("work/b/file", O_CREAT), EACCES);
	EXPECT_ERROR(write_to("to-work/file", O_CREAT), EACCES);
	return 0;
}

static void follows_no_link(void **state)
{
	need_landlock();
	assert_int_equal(mkdir(folder_path("work"), 0755), 0);
	assert_int_equal(mkdir(folder_path("work/b"), 0755), 0);
	assert_int_equal(symlink("work", folder_path("to-work")), 0);
	assert_int_equal(in_child(follow_links), 0);
	assert_int_equal(filtered_run(COOP_FILTER_STANDARD, false, follow_links), 0);
}

static int read_proc_only(void)
{
	int ruleset = coop_landlock_open(abi, 0);

	EXPECT(ruleset >= 0);
	EXPECT(coop_landlock_allow(ruleset, abi, "/proc", COOP_ACCESS_PROC) == 0);
	EXPECT(coop_landlock_allow(ruleset, abi, folder_path("one"), COOP_ACCESS_READ) == 0);
	EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	EXPECT(coop_landlock_enforce(ruleset) == 0);
	EXPECT(open("/proc/self/status", O_RDONLY | O_CLOEXEC) >= 0);
	EXPECT_ERROR(open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC), EACCES);
	EXPECT(open(folder_path("one"), O_RDONLY | O_CLOEXEC) >= 0);
	EXPECT_ERROR(open(folder_path("one"), O_WRONLY | O_CLOEXEC), EACCES);
	EXPECT_ERROR(open(folder_path("old"), O_RDONLY | O_CLOEXEC), EACCES);
	EXPECT_ERROR(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), EACCES);
	EXPECT_ERROR(execl("/bin/true", "true", NULL), EACCES);
	return 0;
}

static void allows_proc_and_single_files(void **state)
{
	need_landlock();
	prepare();
	assert_int_equal(in_child(read_proc_only), 0);
	folder_as_user(read_proc_only);
}

static pid_t outsider;

static int reach_out(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	struct termios settings;

	/* Made before, and reached by name alone. */
	(void)snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", folder);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int ruleset = coop_landlock_open(abi, 3);
	EXPECT(fd >= 0 && ruleset >= 0);
	EXPECT(coop_landlock_allow(ruleset, abi, "/", COOP_ACCESS_READ) == 0);
	EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && coop_landlock_enforce(ruleset) == 0);
	int device = open("/dev/null", O_RDONLY | O_CLOEXEC);
	EXPECT(device >= 0);
	EXPECT_ERROR(tcgetattr(device, &settings), abi >= 5 ? EACCES : ENOTTY);
	if (abi >= 6) {
		EXPECT_ERROR(kill(outsider, 0), EPERM);
		EXPECT_ERROR(connect(fd, (struct sockaddr *)&address, sizeof address), EPERM);
	} else {
		EXPECT(kill(outsider, 0) == 0);
		EXPECT(connect(fd, (struct sockaddr *)&address, sizeof address) == 0);
	}
	return 0;
}

static void keeps_to_its_scope(void **state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	need_landlock();
	outsider = getpid();
	(void)snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", folder);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(fd, 8), 0);
	assert_int_equal(in_child(reach_out), 0);
	for (abi = abi > 4 ? 4 : abi; abi >= 2; abi--)
		assert_int_equal(in_child(reach_out), 0);
	assert_int_equal(close(fd), 0);
}

static int enforce_nothing(void)
{
	EXPECT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	EXPECT(coop_landlock_enforce(-1) == -EBADF);
	return 0;
}

static void tells_what_fails(void **state)
{
	need_landlock();
	assert_in_range(abi, 2, 7);
	assert_int_equal(in_child(enforce_nothing), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(confines, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(confines_a_user, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(confines_with_older_abi, folder_make,
						folder_remove),
		cmocka_unit_test_setup_teardown(confines_under_the_filter, folder_make,
						folder_remove),
		cmocka_unit_test_setup_teardown(follows_no_link, folder_make, folder_remove),
		cmocka_unit_test_setup_teardown(allows_proc_and_single_files, folder_make,
						folder_remove),
		cmocka_unit_test_setup_teardown(keeps_to_its_scope, folder_make, folder_remove),
		cmocka_unit_test(tells_what_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
