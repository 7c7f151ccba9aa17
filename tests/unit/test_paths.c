/* Where the socket and the state are, and which folders are trusted. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io/paths.h"

static char root[] = "/tmp/coop-test-XXXXXX";

static int make_root(void **state)
{
	return mkdtemp(root) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *place)
{
	return remove(path);
}

static int remove_root(void **state)
{
	return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *below(char *path, const char *name)
{
	(void)snprintf(path, COOP_PATHS_MAX, "%s/%s", root, name);
	return path;
}

static void order(void **state)
{
	char path[COOP_PATHS_MAX];

	(void)setenv("XDG_RUNTIME_DIR", "/x/run", 1);
	(void)setenv("XDG_STATE_HOME", "/x/state", 1);
	(void)setenv("COOP_SOCKET", "/y/sock", 1);
	(void)setenv("COOP_STATE", "/y/state", 1);
	(void)setenv("COOP_DATA", "/y/data", 1);
	(void)setenv("XDG_DATA_HOME", "/x/data", 1);
	assert_int_equal(coop_paths_data(path, sizeof path), 0);
	assert_string_equal(path, "/y/data");
	(void)unsetenv("COOP_DATA");
	assert_int_equal(coop_paths_data(path, sizeof path), 0);
	assert_string_equal(path, geteuid() == 0 ? "/srv/coop" : "/x/data/coop");
	assert_int_equal(coop_paths_socket(path, sizeof path), 0);
	assert_string_equal(path, "/y/sock");
	assert_int_equal(coop_paths_state(path, sizeof path), 0);
	assert_string_equal(path, "/y/state");
	/* Empty is not set. */
	(void)setenv("COOP_SOCKET", "", 1);
	(void)unsetenv("COOP_STATE");
	assert_int_equal(coop_paths_socket(path, sizeof path), 0);
	assert_string_equal(path, "/x/run/coop/keeper.sock");
	assert_int_equal(coop_paths_state(path, sizeof path), 0);
	assert_string_equal(path, "/x/state/coop");
}

static void too_long(void **state)
{
	char path[COOP_PATHS_MAX], name[109];

	memset(name, 'a', sizeof name - 1);
	name[0] = '/';
	name[107] = 0;
	(void)setenv("COOP_SOCKET", name, 1);
	assert_int_equal(coop_paths_socket(path, sizeof path), 0);
	name[107] = 'a';
	name[108] = 0;
	(void)setenv("COOP_SOCKET", name, 1);
	assert_int_equal(coop_paths_socket(path, sizeof path), -ENAMETOOLONG);
}

static void makes_folders(void **state)
{
	char path[COOP_PATHS_MAX];
	struct stat st;

	assert_int_equal(coop_paths_make_parent(below(path, "a/b/c/sock")), 0);
	assert_int_equal(stat(below(path, "a/b/c"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(stat(below(path, "a"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(coop_paths_make_parent(below(path, "a/b/c/sock")), 0);
	assert_int_equal(coop_paths_make_dir(below(path, "a/d")), 0);
}

static void refuses_open_folders(void **state)
{
	char path[COOP_PATHS_MAX], link[COOP_PATHS_MAX];

	assert_int_equal(mkdir(below(path, "open"), 0700), 0);
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(coop_paths_make_dir(path), -EPERM);
	assert_int_equal(coop_paths_make_parent(below(path, "open/sock")), -EPERM);
	assert_int_equal(symlink("open", below(link, "link")), 0);
	assert_int_equal(coop_paths_make_dir(link), -EPERM);
	int file = creat(below(path, "file"), 0600);
	assert_true(file >= 0);
	(void)close(file);
	assert_int_equal(coop_paths_make_dir(path), -ENOTDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(order),
		cmocka_unit_test(too_long),
		cmocka_unit_test(makes_folders),
		cmocka_unit_test(refuses_open_folders),
	};

	return cmocka_run_group_tests(tests, make_root, remove_root);
}
