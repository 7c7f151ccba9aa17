/* Under the filters no call makes a file set-id, or a device. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "filtered.h"
#include "folder.h"

#define HIGH (UINT64_C(1) << 32)
#define SYS_FCHMODAT2 452

/* An empty path is ENOENT for the kernel, -1 no descriptor: what comes back tells who refused. */
static int try_mode(uint64_t mode)
{
	int expected = mode & (S_ISUID | S_ISGID) ? EPERM : ENOENT;

#ifdef __x86_64__
	EXPECT_ERROR(syscall(SYS_chmod, "", mode), expected);
	EXPECT_ERROR(syscall(SYS_creat, "", mode), expected);
	EXPECT_ERROR(syscall(SYS_mkdir, "", mode), expected);
	EXPECT_ERROR(syscall(SYS_mknod, "", S_IFIFO | mode, 0), expected);
#endif
	EXPECT_ERROR(syscall(SYS_fchmod, -1, mode), expected == EPERM ? EPERM : EBADF);
	EXPECT_ERROR(syscall(SYS_fchmodat, AT_FDCWD, "", mode), expected);
	EXPECT_ERROR(syscall(SYS_mkdirat, AT_FDCWD, "", mode), expected);
	EXPECT_ERROR(syscall(SYS_mknodat, AT_FDCWD, "", S_IFIFO | mode, 0), expected);
	errno = 0;
	EXPECT(syscall(SYS_FCHMODAT2, AT_FDCWD, "", mode, 0) == -1 &&
	       (errno == EPERM) == (expected == EPERM));
	return 0;
}

static int try_modes(void)
{
	for (uint64_t mode = 0; mode < 010000; mode += 0100) {
		EXPECT(try_mode(mode) == 0);
		EXPECT(try_mode(mode | HIGH) == 0);
	}
	return try_mode(UINT64_C(0xffff00000755)) || try_mode(04777) || try_mode(02001);
}

static int try_open(uint64_t flags, uint64_t mode)
{
	bool makes = flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY));
	int expected = makes && (mode & (S_ISUID | S_ISGID)) ? EPERM : ENOENT;

#ifdef __x86_64__
	EXPECT_ERROR(syscall(SYS_open, "", flags, mode), expected);
#endif
	EXPECT_ERROR(syscall(SYS_openat, AT_FDCWD, "", flags, mode), expected);
	return 0;
}

static int try_opens(void)
{
	static const uint64_t flags[] = {
		O_RDONLY,           O_CREAT,          O_CREAT | O_WRONLY | O_EXCL | O_CLOEXEC,
		O_TMPFILE | O_RDWR, O_RDWR | O_TRUNC, O_CREAT | O_NOFOLLOW | HIGH,
		O_DIRECTORY};

	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
		for (uint64_t mode = 0; mode < 010000; mode += 0111) {
			EXPECT(try_open(flags[i], mode) == 0);
			EXPECT(try_open(flags[i], mode | HIGH) == 0);
		}
	}
	return 0;
}

/* Nothing of the kind may lie on disk, whatever the call said. */
static int leave_set_id(void)
{
	static const mode_t modes[] = {04755, 02755, 06777};
	struct stat st;

	int fd = open(folder_path("plain"), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
	EXPECT(fd >= 0 && fchmod(fd, 0755) == 0 && chmod(folder_path("plain"), 01644) == 0);
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
		EXPECT_ERROR(fchmod(fd, modes[i]), EPERM);
		EXPECT_ERROR(chmod(folder_path("plain"), modes[i]), EPERM);
		EXPECT_ERROR(chmod(folder, modes[i]), EPERM);
		EXPECT_ERROR(open(folder_path("new"), O_CREAT | O_WRONLY, modes[i]), EPERM);
		EXPECT_ERROR(creat(folder_path("new"), modes[i]), EPERM);
		EXPECT_ERROR(open(folder, O_TMPFILE | O_WRONLY, modes[i]), EPERM);
		EXPECT_ERROR(mkdir(folder_path("new"), modes[i]), EPERM);
	}
	EXPECT(fstat(fd, &st) == 0 && (st.st_mode & 07777) == 01644);
	EXPECT(!folder_has("new") && stat(folder, &st) == 0 && !(st.st_mode & 06000));
	EXPECT(close(fd) == 0 && unlink(folder_path("plain")) == 0);
	return 0;
}

static void refuses_set_id(void **state)
{
	filtered_holds(COOP_FILTER_STANDARD, try_modes);
	filtered_holds(COOP_FILTER_STANDARD, try_opens);
	assert_int_equal(filtered_run(COOP_FILTER_STANDARD, false, leave_set_id), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(folder, 65534, 65534), 0);
		assert_int_equal(filtered_run(COOP_FILTER_STANDARD, true, leave_set_id), 0);
	}
}

static int make_devices(void)
{
	static const struct {
		mode_t type;
		int error;
	} kinds[] = {{S_IFCHR, EPERM},  {S_IFBLK, EPERM},   {S_IFIFO, ENOENT},
		     {S_IFREG, ENOENT}, {S_IFSOCK, ENOENT}, {0, ENOENT}};

	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
#ifdef __x86_64__
		EXPECT_ERROR(syscall(SYS_mknod, "", kinds[i].type | 0600, 0x103), kinds[i].error);
#endif
		EXPECT_ERROR(syscall(SYS_mknodat, AT_FDCWD, "", HIGH | kinds[i].type | 0600, 0x103),
			     kinds[i].error);
	}
	return 0;
}

static void refuses_devices(void **state)
{
	filtered_holds(COOP_FILTER_STANDARD, make_devices);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(refuses_set_id, folder_make, folder_remove),
		cmocka_unit_test(refuses_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
