/* Placeholders: made once, shared, removed with the last user and only while they are as they were
 * made; a killed keeper's go, too. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "folder.h"
#include "sandbox/layout/ghosts.h"
#include "sandbox/layout/ghosts_disk.h"

static char one[256], two[256];

static int begin(void **state)
{
	int r = folder_make(state);

	(void)snprintf(one, sizeof one, "%s/.git", folder);
	(void)snprintf(two, sizeof two, "%s/.bashrc", folder);
	return r;
}

static mode_t kind_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 ? st.st_mode & S_IFMT : 0;
}

static bool stands(const struct coop_ghosts *ghosts, const char *path)
{
	struct coop_ghost_parent near = COOP_GHOST_PARENT;
	bool r = coop_ghosts_stands(ghosts, &near, path);

	coop_ghost_parent_close(&near);
	return r;
}

/* For the list; it goes with the program. */
static int memory(void)
{
	int fd = memfd_create("placeholders", MFD_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static void test_made_and_removed(void **state)
{
	struct coop_ghosts *ghosts = coop_ghosts_new(NULL, -1);
	struct coop_ghost list[] = {{.path = one, .folder = true}, {.path = two}};
	int removed[COOP_GHOSTS_REMOVED_MAX];
	struct stat st;

	(void)state;
	assert_int_equal(coop_ghosts_take(ghosts, list, 2), 0);
	assert_true(list[0].held && list[1].held);
	assert_int_equal(kind_of(one), S_IFDIR);
	assert_int_equal(kind_of(two), S_IFSOCK);
	assert_int_equal(lstat(two, &st), 0);
	assert_int_equal(st.st_mode & 0222, 0);
	assert_true(stands(ghosts, one));
	assert_true(stands(ghosts, two));
	assert_false(stands(ghosts, folder));
	assert_int_equal(coop_ghosts_count(ghosts), 2);
	coop_ghosts_drop(ghosts, list, 2);
	assert_int_equal(kind_of(one), 0);
	assert_int_equal(kind_of(two), 0);
	assert_int_equal(coop_ghosts_count(ghosts), 0);
	/* Once more does no harm. */
	coop_ghosts_drop(ghosts, list, 2);
	assert_int_equal(coop_ghosts_removed(ghosts, removed), 1);
	assert_int_equal(close(removed[0]), 0);
	coop_ghosts_free(ghosts);
}

static void test_shared(void **state)
{
	struct coop_ghosts *ghosts = coop_ghosts_new(NULL, -1);
	struct coop_ghost first = {.path = one, .folder = true}, second = first;

	(void)state;
	assert_int_equal(coop_ghosts_take(ghosts, &first, 1), 0);
	assert_int_equal(coop_ghosts_take(ghosts, &second, 1), 0);
	assert_int_equal(coop_ghosts_count(ghosts), 1);
	coop_ghosts_drop(ghosts, &first, 1);
	assert_int_equal(kind_of(one), S_IFDIR);
	coop_ghosts_drop(ghosts, &second, 1);
	assert_int_equal(kind_of(one), 0);

	/* The end of the table is the end of all that stand. */
	assert_int_equal(coop_ghosts_take(ghosts, &first, 1), 0);
	coop_ghosts_free(ghosts);
	assert_int_equal(kind_of(one), 0);
}

/* One inode serves all sockets of a folder, and each name is kept and removed by itself. */
static void test_sockets_share_an_inode(void **state)
{
	struct coop_ghosts *ghosts = coop_ghosts_new(NULL, -1);
	char three[300];
	struct coop_ghost list[] = {{.path = two}, {.path = three}}, later = {.path = three};
	struct stat first, second;

	(void)state;
	(void)snprintf(three, sizeof three, "%s/.profile", folder);
	assert_int_equal(coop_ghosts_take(ghosts, list, 2), 0);
	assert_int_equal(lstat(two, &first), 0);
	assert_int_equal(lstat(three, &second), 0);
	/* Old kernels let only root make a name for a descriptor; others get two sockets. */
	if (geteuid() == 0)
		assert_int_equal(first.st_ino, second.st_ino);
	assert_int_equal(coop_ghosts_take(ghosts, &later, 1), 0);
	coop_ghosts_drop(ghosts, list, 2);
	assert_int_equal(kind_of(two), 0);
	assert_int_equal(kind_of(three), S_IFSOCK);
	assert_true(stands(ghosts, three));
	coop_ghosts_drop(ghosts, &later, 1);
	assert_int_equal(kind_of(three), 0);
	coop_ghosts_free(ghosts);
}

/* With a state folder on the same file system one inode serves all folders; in a stranger's it is
 * one of its own, given to him. What somebody put where that inode's name belongs is no reason to
 * fail. */
static void test_sockets_share_the_stock(void **state)
{
	char other[256], three[300], place[300];
	struct coop_ghost list[] = {{.path = two}, {.path = three}};
	struct stat first, second;

	(void)state;
	(void)snprintf(other, sizeof other, "%s/other", folder);
	(void)snprintf(three, sizeof three, "%s/.bashrc", other);
	(void)snprintf(place, sizeof place, "%s/placeholder", folder);
	assert_int_equal(mkdir(other, 0755), 0);
	struct coop_ghosts *ghosts = coop_ghosts_new(folder, memory());
	assert_int_equal(coop_ghosts_take(ghosts, list, 2), 0);
	assert_int_equal(lstat(two, &first), 0);
	assert_int_equal(lstat(three, &second), 0);
	assert_int_equal(first.st_ino, second.st_ino);
	assert_int_equal(first.st_nlink, 3);
	coop_ghosts_drop(ghosts, list, 2);
	assert_int_equal(kind_of(two) | kind_of(three), 0);
	if (geteuid() == 0) {
		assert_int_equal(chown(other, 61234, 61234), 0);
		assert_int_equal(coop_ghosts_take(ghosts, list, 2), 0);
		assert_int_equal(lstat(three, &second), 0);
		assert_int_equal(second.st_uid, 61234);
		assert_int_equal(lstat(two, &first), 0);
		assert_int_equal(first.st_uid, 0);
		coop_ghosts_drop(ghosts, list, 2);
		/* A group of its own is enough. */
		assert_int_equal(chown(other, 0, 61234), 0);
		assert_int_equal(coop_ghosts_take(ghosts, list, 2), 0);
		assert_int_equal(lstat(three, &second), 0);
		assert_int_equal(second.st_gid, 61234);
		coop_ghosts_drop(ghosts, list, 2);
	}
	coop_ghosts_free(ghosts);
	assert_int_equal(kind_of(place), 0);

	assert_int_equal(mkdir(place, 0755), 0);
	ghosts = coop_ghosts_new(folder, memory());
	assert_int_equal(coop_ghosts_take(ghosts, list, 2), 0);
	assert_int_equal(kind_of(two), S_IFSOCK);
	assert_int_equal(kind_of(three), S_IFSOCK);
	coop_ghosts_free(ghosts);
	assert_int_equal(kind_of(two) | kind_of(three), 0);
	assert_int_equal(kind_of(place), S_IFDIR);
}

static void test_what_others_made_stays(void **state)
{
	struct coop_ghosts *ghosts = coop_ghosts_new(NULL, -1);
	struct coop_ghost list[] = {{.path = one, .folder = true}, {.path = two}};

	(void)state;
	/* There before. */
	folder_write(".bashrc", "mine", 4, 0644);
	assert_int_equal(coop_ghosts_take(ghosts, list, 2), 0);
	assert_true(list[0].held);
	assert_false(list[1].held);
	/* Filled meanwhile. */
	folder_write(".git/HEAD", "ref", 3, 0644);
	assert_false(stands(ghosts, one));
	coop_ghosts_drop(ghosts, list, 2);
	assert_true(folder_has(".git/HEAD"));
	assert_int_equal(kind_of(two), S_IFREG);

	/* Replaced meanwhile. */
	assert_int_equal(unlink(two), 0);
	assert_int_equal(coop_ghosts_take(ghosts, &list[1], 1), 0);
	assert_int_equal(unlink(two), 0);
	folder_write(".bashrc", "mine", 4, 0644);
	assert_false(stands(ghosts, two));
	coop_ghosts_drop(ghosts, &list[1], 1);
	assert_int_equal(kind_of(two), S_IFREG);
	coop_ghosts_free(ghosts);
}

/* Somebody's own that is just like the placeholder that he removed: empty, of its kind and size.
 * Only that it is another one tells. */
static void test_alike_is_not_ours(void **state)
{
	static const struct coop_ghost kinds[] = {
		{.path = two, .content = ""}, {.path = two, .content = ".\n"}, {.path = two}};
	struct coop_ghosts *ghosts = coop_ghosts_new(NULL, -1);
	struct coop_ghost home = {.path = one, .folder = true};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct coop_ghost first = kinds[i], second = first;
		const char *content = first.content;

		assert_int_equal(coop_ghosts_take(ghosts, &first, 1), 0);
		/* Its number is not given to another while somebody has it open. */
		int old = open(two, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		assert_true(old >= 0);
		assert_int_equal(unlink(two), 0);
		if (content)
			folder_write(".bashrc", content, strlen(content), 0444);
		else
			assert_int_equal(mknod(two, S_IFSOCK | 0444, 0), 0);
		assert_false(stands(ghosts, two));
		/* The next one finds the name taken, and counts for nothing. */
		assert_int_equal(coop_ghosts_take(ghosts, &second, 1), 0);
		assert_false(second.held);
		assert_int_equal(coop_ghosts_count(ghosts), 1);
		coop_ghosts_drop(ghosts, &second, 1);
		assert_int_equal(coop_ghosts_count(ghosts), 1);
		coop_ghosts_drop(ghosts, &first, 1);
		assert_int_equal(coop_ghosts_count(ghosts), 0);
		assert_int_equal(kind_of(two), content ? S_IFREG : S_IFSOCK);
		assert_int_equal(unlink(two), 0);
		assert_int_equal(close(old), 0);
	}
	assert_int_equal(coop_ghosts_take(ghosts, &home, 1), 0);
	int old = open(one, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(old >= 0);
	assert_int_equal(rmdir(one), 0);
	assert_int_equal(mkdir(one, 0755), 0);
	assert_false(stands(ghosts, one));
	coop_ghosts_drop(ghosts, &home, 1);
	assert_int_equal(kind_of(one), S_IFDIR);
	assert_int_equal(close(old), 0);
	coop_ghosts_free(ghosts);
}

/* What lies in another goes first; so do those of a list that could not be taken whole, unless
 * somebody else has them. */
static void test_order(void **state)
{
	struct coop_ghosts *ghosts = coop_ghosts_new(NULL, -1);
	char inside[300], wrong[] = "relative";
	struct coop_ghost list[] = {{.path = one, .folder = true}, {.path = inside}};
	struct coop_ghost bad[] = {{.path = two}, {.path = one, .folder = true}, {.path = wrong}};
	struct coop_ghost late[] = {{.path = wrong, .held = true}, {.path = two, .held = true}};
	struct coop_ghost other = {.path = two};

	(void)state;
	(void)snprintf(inside, sizeof inside, "%s/config", one);
	assert_int_equal(coop_ghosts_take(ghosts, list, 2), 0);
	assert_int_equal(kind_of(inside), S_IFSOCK);
	coop_ghosts_drop(ghosts, list, 2);
	assert_int_equal(kind_of(one), 0);

	assert_int_equal(coop_ghosts_take(ghosts, &other, 1), 0);
	assert_int_equal(coop_ghosts_take(ghosts, bad, 3), -EINVAL);
	assert_false(bad[0].held || bad[1].held || bad[2].held);
	assert_int_equal(kind_of(one), 0);
	assert_int_equal(kind_of(two), S_IFSOCK);
	/* What a list says of an earlier time counts for nothing. */
	assert_int_equal(coop_ghosts_take(ghosts, late, 2), -EINVAL);
	assert_false(late[0].held || late[1].held);
	assert_int_equal(kind_of(two), S_IFSOCK);
	coop_ghosts_drop(ghosts, &other, 1);
	assert_int_equal(kind_of(two), 0);
	assert_int_equal(coop_ghosts_count(ghosts), 0);
	coop_ghosts_free(ghosts);
}

/* Folders that went are handed over, each once and no more than there is room for. */
static void test_removed_folders(void **state)
{
	struct coop_ghosts *ghosts = coop_ghosts_new(NULL, -1);
	struct coop_ghost list[COOP_GHOSTS_REMOVED_MAX + 1] = {0};
	int removed[COOP_GHOSTS_REMOVED_MAX];
	struct stat st;

	(void)state;
	for (unsigned i = 0; i <= COOP_GHOSTS_REMOVED_MAX; i++) {
		assert_true(asprintf(&list[i].path, "%s/d%u", folder, i) > 0);
		list[i].folder = true;
	}
	for (size_t count = COOP_GHOSTS_REMOVED_MAX - 1; count <= COOP_GHOSTS_REMOVED_MAX + 1;
	     count++) {
		size_t most = count < COOP_GHOSTS_REMOVED_MAX ? count : COOP_GHOSTS_REMOVED_MAX;

		assert_int_equal(coop_ghosts_take(ghosts, list, count), 0);
		coop_ghosts_drop(ghosts, list, count);
		assert_int_equal(coop_ghosts_removed(ghosts, removed), most);
		for (size_t i = 0; i < most; i++) {
			assert_int_equal(fstat(removed[i], &st), 0);
			assert_int_equal(st.st_nlink, 0);
			assert_int_equal(close(removed[i]), 0);
		}
		assert_int_equal(coop_ghosts_removed(ghosts, removed), 0);
	}
	for (unsigned i = 0; i <= COOP_GHOSTS_REMOVED_MAX; i++)
		free(list[i].path);
	coop_ghosts_free(ghosts);
}

static void test_removed_meanwhile(void **state)
{
	struct coop_ghosts *ghosts = coop_ghosts_new(NULL, -1);
	struct coop_ghost first = {.path = two}, second = first;

	(void)state;
	assert_int_equal(coop_ghosts_take(ghosts, &first, 1), 0);
	assert_int_equal(unlink(two), 0);
	assert_int_equal(coop_ghosts_take(ghosts, &second, 1), 0);
	assert_int_equal(kind_of(two), S_IFSOCK);
	coop_ghosts_drop(ghosts, &first, 1);
	assert_int_equal(kind_of(two), S_IFSOCK);
	coop_ghosts_drop(ghosts, &second, 1);
	assert_int_equal(kind_of(two), 0);
	coop_ghosts_free(ghosts);
}

static void test_links_are_not_followed(void **state)
{
	struct coop_ghosts *ghosts = coop_ghosts_new(NULL, -1);
	char through[300];
	struct coop_ghost ghost = {.path = through};

	(void)state;
	assert_int_equal(mkdir(folder_path("real"), 0755), 0);
	assert_int_equal(symlink("real", folder_path("link")), 0);
	(void)snprintf(through, sizeof through, "%s/link/x", folder);
	assert_int_equal(coop_ghosts_take(ghosts, &ghost, 1), 0);
	assert_false(ghost.held);
	assert_false(folder_has("real/x"));
	coop_ghosts_free(ghosts);
}

/* A plain file goes while it is as it was made; what was written to it stays. */
static void test_plain_files(void **state)
{
	struct coop_ghosts *ghosts = coop_ghosts_new(folder, memory());
	char path[300];
	struct coop_ghost list[] = {{.path = path, .content = ".\n"}, {.path = two, .content = ""}};
	size_t size;

	(void)state;
	(void)snprintf(path, sizeof path, "%s/commondir", folder);
	assert_int_equal(coop_ghosts_take(ghosts, list, 2), 0);
	assert_true(list[0].held && list[1].held);
	char *content = folder_read("commondir", &size);
	assert_string_equal(content, ".\n");
	free(content);
	assert_int_equal(kind_of(two), S_IFREG);
	assert_true(stands(ghosts, path));
	folder_write(".bashrc", "mine", 4, 0644);
	assert_false(stands(ghosts, two));
	coop_ghosts_drop(ghosts, list, 2);
	assert_int_equal(kind_of(path), 0);
	assert_int_equal(kind_of(two), S_IFREG);
	/* What somebody has already is nobody's placeholder. */
	assert_int_equal(coop_ghosts_take(ghosts, &list[1], 1), 0);
	assert_false(list[1].held);
	coop_ghosts_free(ghosts);
}

/* Of a folder that its owner could open again it is refused; what stands goes from one that he
 * closed meanwhile. */
static int in_a_closed_folder(void)
{
	struct coop_ghosts *ghosts = coop_ghosts_new(NULL, -1);
	char path[300];
	struct coop_ghost list[] = {{.path = two}, {.path = path}};
	struct stat st;

	(void)snprintf(path, sizeof path, "%s/closed/x", folder);
	if (mkdir(folder_path("closed"), 0555) < 0 ||
	    coop_ghosts_take(ghosts, list, 2) != -EACCES || list[0].held || list[1].held)
		return 1;
	if (chmod(folder_path("closed"), 0755) < 0 || coop_ghosts_take(ghosts, list, 2) < 0 ||
	    chmod(folder_path("closed"), 0) < 0)
		return 2;
	coop_ghosts_drop(ghosts, list, 2);
	coop_ghosts_free(ghosts);
	if (stat(folder_path("closed"), &st) < 0 || (st.st_mode & 0777) != 0)
		return 3;
	/* Empty by now. */
	return folder_has(".bashrc") ? 4 : rmdir(folder_path("closed")) < 0 ? 5 : 0;
}

/* Where nobody inside could make it either, it is passed over. */
static int in_a_folder_of_others(void)
{
	struct coop_ghosts *ghosts = coop_ghosts_new(NULL, -1);
	char path[300];
	struct coop_ghost list[] = {{.path = two}, {.path = path}};

	(void)snprintf(path, sizeof path, "%s/others/x", folder);
	if (coop_ghosts_take(ghosts, list, 2) < 0 || !list[0].held || list[1].held)
		return 1;
	coop_ghosts_free(ghosts);
	return folder_has(".bashrc") ? 2 : 0;
}

static void test_not_possible(void **state)
{
	(void)state;
	folder_as_user(in_a_closed_folder);
	if (geteuid() == 0) {
		assert_int_equal(mkdir(folder_path("others"), 0755), 0);
		folder_as_user(in_a_folder_of_others);
	}
}

/* A keeper that ends without a word. */
static void test_left_by_a_killed_keeper(void **state)
{
	int status, shared = memory();
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0) {
		struct coop_ghost list[] = {{.path = one, .folder = true}, {.path = two}};
		struct coop_ghosts *ghosts = coop_ghosts_new(folder, shared);
		_exit(ghosts && coop_ghosts_take(ghosts, list, 2) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	coop_ghosts_save(folder, shared); /* as a guard does */
	assert_int_equal(kind_of(one), S_IFDIR);
	assert_int_equal(kind_of(two), S_IFSOCK);

	size_t size;
	char *list = folder_read("ghosts", &size);
	assert_true(size > 0);
	struct coop_ghosts *ghosts = coop_ghosts_new(folder, memory());
	assert_int_equal(kind_of(one), 0);
	assert_int_equal(kind_of(two), 0);
	coop_ghosts_free(ghosts);

	/* An old list must not remove what is not ours, and a broken one nothing at all. */
	assert_int_equal(mkdir(one, 0755), 0);
	folder_write("ghosts", list, size, 0600);
	folder_write(".bashrc", "mine", 4, 0644);
	coop_ghosts_free(coop_ghosts_new(folder, memory()));
	assert_int_equal(kind_of(two), S_IFREG);
	folder_write("ghosts", "16384 1\0004 x y /\0\0\377 1 1 1 /etc\00016384 1 2", 36, 0600);
	coop_ghosts_free(coop_ghosts_new(folder, memory()));

	/* What stands behind the end of a list is of an earlier, longer one. */
	(void)rmdir(one); /* the old list may have named just this inode */
	assert_int_equal(mkdir(one, 0755), 0);
	struct stat st;
	char longer[600] = "";
	assert_int_equal(lstat(one, &st), 0);
	(void)snprintf(longer + 1, sizeof longer - 1, "%u %ju %ju 0 %s", (unsigned)S_IFDIR,
		       (uintmax_t)st.st_dev, (uintmax_t)st.st_ino, one);
	folder_write("ghosts", longer, sizeof longer, 0600);
	coop_ghosts_free(coop_ghosts_new(folder, memory()));
	assert_int_equal(kind_of(one), S_IFDIR);
	folder_write("ghosts", longer + 1, sizeof longer - 1, 0600);
	coop_ghosts_free(coop_ghosts_new(folder, memory()));
	assert_int_equal(kind_of(one), 0);
	free(list);
}

/* Many of all kinds, more than one page of names: each is listed as what it is. */
static void test_many_left_by_a_killed_keeper(void **state)
{
	static const struct coop_ghost kinds[] = {
		{.folder = true}, {.content = ""}, {.folder = true}, {.content = ".\n"}, {0}};
	struct coop_ghost list[100] = {0};
	const size_t count = sizeof list / sizeof *list;
	int status;

	(void)state;
	for (size_t i = 0; i < count; i++) {
		list[i] = kinds[i % 5];
		assert_true(asprintf(&list[i].path, "%s/.a-rather-long-name-of-one-%zu", folder,
				     i) > 0);
	}
	int shared = memory();
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct coop_ghosts *ghosts = coop_ghosts_new(folder, shared);
		_exit(ghosts && coop_ghosts_take(ghosts, list, count) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	coop_ghosts_save(folder, shared); /* as a guard does */
	for (size_t i = 0; i < count; i++)
		assert_int_not_equal(kind_of(list[i].path), 0);
	coop_ghosts_free(coop_ghosts_new(folder, memory()));
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(kind_of(list[i].path), 0);
		free(list[i].path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_made_and_removed, begin, folder_remove),
		cmocka_unit_test_setup_teardown(test_shared, begin, folder_remove),
		cmocka_unit_test_setup_teardown(test_sockets_share_an_inode, begin, folder_remove),
		cmocka_unit_test_setup_teardown(test_sockets_share_the_stock, begin, folder_remove),
		cmocka_unit_test_setup_teardown(test_what_others_made_stays, begin, folder_remove),
		cmocka_unit_test_setup_teardown(test_alike_is_not_ours, begin, folder_remove),
		cmocka_unit_test_setup_teardown(test_order, begin, folder_remove),
		cmocka_unit_test_setup_teardown(test_removed_folders, begin, folder_remove),
		cmocka_unit_test_setup_teardown(test_removed_meanwhile, begin, folder_remove),
		cmocka_unit_test_setup_teardown(test_links_are_not_followed, begin, folder_remove),
		cmocka_unit_test_setup_teardown(test_plain_files, begin, folder_remove),
		cmocka_unit_test_setup_teardown(test_not_possible, begin, folder_remove),
		cmocka_unit_test_setup_teardown(test_left_by_a_killed_keeper, begin, folder_remove),
		cmocka_unit_test_setup_teardown(test_many_left_by_a_killed_keeper, begin,
						folder_remove),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
