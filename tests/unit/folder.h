/* A folder of its own for each test, and files in it. Included after cmocka.h. */
#ifndef COOP_TESTS_FOLDER_H
#define COOP_TESTS_FOLDER_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[64];

static inline int folder_make(void **state)
{
	(void)snprintf(folder, sizeof folder, "/tmp/coop-test-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static inline int folder_remove_one(const char *path, const struct stat *st, int type,
				    struct FTW *place)
{
	return remove(path);
}

static inline int folder_remove(void **state)
{
	(void)chmod(folder, 0700);
	return nftw(folder, folder_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* Valid until the call after the next. */
static inline const char *folder_path(const char *name)
{
	static char paths[2][256];
	static unsigned turn;
	char *path = paths[turn++ % 2];

	(void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
	return path;
}

static inline void folder_write(const char *name, const void *bytes, size_t size, mode_t mode)
{
	int fd = open(folder_path(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(write(fd, bytes, size), size);
	assert_int_equal(close(fd), 0);
}

/* With a NUL behind; to be freed. */
static inline char *folder_read(const char *name, size_t *ret_size)
{
	FILE *file = fopen(folder_path(name), "re");
	struct stat st;

	assert_non_null(file);
	assert_int_equal(fstat(fileno(file), &st), 0);
	char *bytes = malloc((size_t)st.st_size + 1);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, (size_t)st.st_size, file), st.st_size);
	bytes[st.st_size] = 0;
	assert_int_equal(fclose(file), 0);
	if (ret_size)
		*ret_size = (size_t)st.st_size;
	return bytes;
}

static inline bool folder_has(const char *name)
{
	return access(folder_path(name), F_OK) == 0;
}

/* Runs `test` as somebody whom permissions hold back, also where the suite runs as root. It says 0
 * if all was well. */
static inline void folder_as_user(int (*test)(void))
{
	int status;

	if (geteuid() == 0)
		assert_int_equal(chown(folder, 65534, 65534), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (geteuid() == 0 && (setegid(65534) < 0 || seteuid(65534) < 0))
			_exit(99);
		_exit(test());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#endif
