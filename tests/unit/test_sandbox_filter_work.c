/* Under the filters ordinary work goes on; their form is as the header says; a caller's own list is
 * stacked on them. */
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cmocka.h>

#include "base/mem.h"
#include "filtered.h"
#include "folder.h"

static int use_files(void)
{
	struct stat st;

	(void)umask(022);
	int fd = open(folder_path("file"), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
	EXPECT(fd >= 0 && write(fd, "x", 1) == 1 && fchmod(fd, 0755) == 0 && close(fd) == 0);
	fd = creat(folder_path("made"), 0600);
	EXPECT(fd >= 0 && close(fd) == 0);
	fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	EXPECT(fd >= 0 && close(fd) == 0);
	EXPECT(mkdir(folder_path("folder"), 0777) == 0 && chmod(folder_path("folder"), 01755) == 0);
	EXPECT(mkfifo(folder_path("pipe"), 0600) == 0);
	EXPECT(stat(folder_path("pipe"), &st) == 0 && S_ISFIFO(st.st_mode));
	EXPECT(mknod(folder_path("node"), S_IFREG | 0600, 0) == 0);
	EXPECT(rename(folder_path("file"), folder_path("folder/file")) == 0);
	EXPECT(symlink("folder", folder_path("link")) == 0);
	EXPECT(link(folder_path("folder/file"), folder_path("hard")) == 0);
	EXPECT(chdir(folder) == 0 && access("hard", X_OK) == 0);
	/* Opened without O_CREAT: the mode is nobody's business. */
	fd = (int)syscall(SYS_openat, AT_FDCWD, "hard", O_RDONLY, 06777);
	EXPECT(fd >= 0 && close(fd) == 0);
	return 0;
}

static int tidy(void)
{
	static const char *const names[] = {"folder/file", "folder", "made", "pipe",
					    "node",        "link",   "hard"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		EXPECT(remove(folder_path(names[i])) == 0);
	return 0;
}

static int use_files_and_tidy(void)
{
	return use_files() || tidy();
}

static void *add_one(void *number)
{
	++*(int *)number;
	return NULL;
}

static int use_processes(void)
{
	pthread_t thread;
	int number = 0, status;

	EXPECT(pthread_create(&thread, NULL, add_one, &number) == 0);
	EXPECT(pthread_join(thread, NULL) == 0 && number == 1);
	pid_t pid = fork();
	if (pid == 0) {
		(void)execl("/bin/sh", "sh", "-c", "exec cat /dev/null", NULL);
		_exit(1);
	}
	EXPECT(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	EXPECT(filtered_shell("exit 3") == 3 << 8);
	EXPECT(kill(getpid(), 0) == 0);
	return 0;
}

static int use_sockets(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int pair[2];

	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	EXPECT(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
	EXPECT(listen(fd, 1) == 0 && close(fd) == 0);
	EXPECT(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	EXPECT(write(pair[0], "x", 1) == 1 && close(pair[0]) == 0 && close(pair[1]) == 0);
	return 0;
}

/* What a process that waits, prepared, for its command does under the filter. */
static int go_on_from_a_slot(void)
{
	struct rlimit limit;
	uint32_t word = 1;

	if (syscall(444, NULL, 0, 1) > 0)
		EXPECT_ERROR(syscall(445, -1, 1, NULL, 0), EBADF);
	else
		EXPECT(errno == ENOSYS || errno == EOPNOTSUPP);
	EXPECT_ERROR(syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL), EAGAIN);
	EXPECT(syscall(SYS_futex, &word, FUTEX_WAKE, 1) == 0);
	EXPECT(prlimit(0, RLIMIT_NOFILE, NULL, &limit) == 0);
	EXPECT(prlimit(0, RLIMIT_NOFILE, &limit, NULL) == 0);
	int fd = dup(2);
	EXPECT(fd >= 0 && dup2(fd, fd + 1) == fd + 1 && dup3(fd, fd + 2, O_CLOEXEC) == fd + 2);
	EXPECT(syscall(SYS_close_range, fd, ~0u, 0) == 0);
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	EXPECT(root >= 0 && fchdir(root) == 0 && chdir("/") == 0);
	EXPECT(memfd_create("x", MFD_CLOEXEC) >= 0);
	EXPECT(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && prctl(PR_SET_DUMPABLE, 0) == 0);
	EXPECT(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
	       MAP_FAILED);
	(void)execl("/bin/true", "true", NULL);
	return 1;
}

static void lets_work_go_on(void **state)
{
	if (geteuid() == 0)
		assert_int_equal(chmod(folder, 0777), 0);
	filtered_holds(COOP_FILTER_STANDARD, use_files_and_tidy);
	filtered_holds(COOP_FILTER_NO_NETWORK, use_files_and_tidy);
	filtered_holds(COOP_FILTER_STANDARD, use_processes);
	filtered_holds(COOP_FILTER_NO_NETWORK, use_processes);
	filtered_holds(COOP_FILTER_STANDARD, use_sockets);
	filtered_holds(COOP_FILTER_STANDARD, go_on_from_a_slot);
}

static void has_its_form(void **state)
{
	struct coop_buf all = {0};
	size_t at = 0;

	assert_int_equal(coop_buf_append(&all, "01234567", 8), 0);
	assert_int_equal(coop_filter_build(&all), 0);
	coop_buf_consume(&all, 8);
	for (int i = COOP_FILTER_NONE + 1; i < COOP_FILTER_COUNT; i++) {
		uint32_t head[2];
		struct sock_filter last;
		memcpy(head, coop_buf_front(&all) + at, sizeof head);
		/* Each spawn loads one: a program that has grown much is looked at again. */
		assert_in_range(head[0], 50, 320);
		assert_int_equal(head[1], 0);
		at += sizeof head + head[0] * sizeof last;
		assert_true(at <= coop_buf_size(&all));
		memcpy(&last, coop_buf_front(&all) + at - sizeof last, sizeof last);
		assert_int_equal(last.code, BPF_RET | BPF_K);
	}
	assert_int_equal(at, coop_buf_size(&all));
	coop_buf_clear(&all);
}

static int load_own(const char *const *names, size_t count)
{
	struct coop_buf own = {0};

	if (coop_filter_build_own(names, count, &own) < 0)
		return -1;
	int r = filtered_load(coop_buf_front(&own),
			      coop_buf_size(&own) / sizeof(struct sock_filter));
	coop_buf_clear(&own);
	return r;
}

/* Names of this library, later ones, of other architectures, and twice. */
static const char *const own_names[] = {"getppid", "sync",       "getppid",
					"mseal",   "socketcall", "ptrace"};

static int use_own(void)
{
	EXPECT(load_own(own_names, sizeof own_names / sizeof *own_names) == 0);
	EXPECT_ERROR(syscall(SYS_getppid), EPERM);
	EXPECT_ERROR(syscall(SYS_sync), EPERM);
	EXPECT_ERROR(syscall(462, -1, -1, -1), EPERM);
	EXPECT(syscall(SYS_getpid) == getpid());
	/* The standard one below it holds as before. */
	EXPECT_ERROR(syscall(SYS_unshare, 0), EPERM);
	EXPECT_ERROR(syscall(470), ENOSYS);
	return use_processes();
}

static void own_list_is_stacked(void **state)
{
	filtered_holds(COOP_FILTER_STANDARD, use_own);
}

static void own_list_of_nothing(void **state)
{
	struct coop_buf own = {0};

	assert_int_equal(coop_filter_build_own(NULL, 0, &own), 0);
	assert_true(coop_buf_size(&own) >= sizeof(struct sock_filter));
	coop_buf_clear(&own);
}

static void own_list_with_no_name(void **state)
{
	static const char *const wrong[] = {"",      "no_such_call", "READ", " read",
					    "read ", "-1",           "0",    "SYS_read"};
	struct coop_buf own = {0};

	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		const char *names[] = {"read", wrong[i], "write"};
		assert_int_equal(coop_filter_build_own(names, 3, &own), -EINVAL);
		assert_int_equal(coop_buf_size(&own), 0);
	}
	coop_buf_clear(&own);
}

static void no_memory(void **state)
{
	static const char *const names[] = {"read"};
	struct coop_buf all = {0};
	int r = -ENOMEM;

	for (unsigned n = 1; r == -ENOMEM && n < 100; n++) {
		char fault[32];
		(void)snprintf(fault, sizeof fault, "alloc:%u", n);
		(void)setenv("COOP_FAULT", fault, 1);
		coop_mem_init();
		r = coop_filter_build(&all);
		assert_true(r == 0 || coop_buf_size(&all) == 0);
	}
	(void)unsetenv("COOP_FAULT");
	coop_mem_init();
	assert_int_equal(r, 0);
	coop_buf_clear(&all);
	(void)setenv("COOP_FAULT", "alloc:1", 1);
	coop_mem_init();
	assert_int_equal(coop_filter_build_own(names, 1, &all), -ENOMEM);
	(void)unsetenv("COOP_FAULT");
	coop_mem_init();
	coop_buf_clear(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lets_work_go_on, folder_make, folder_remove),
		cmocka_unit_test(has_its_form),
		cmocka_unit_test(own_list_is_stacked),
		cmocka_unit_test(own_list_of_nothing),
		cmocka_unit_test(own_list_with_no_name),
		cmocka_unit_test(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
