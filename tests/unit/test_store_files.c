/* The database as files: what is none of ours is left alone, a keeper killed at any moment loses
 * nothing, a full disk is said. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/mem.h"
#include "storing.h"

static void modes(void **state)
{
	static const char *const names[] = {"records.db", "records.db-wal", "records.db-shm"};
	mode_t mask = umask(0);
	struct coop_store *store = open_store();

	(void)add_agent(store, 0, "uid:1", "main");
	(void)umask(mask);
	for (size_t i = 0; i < 3; i++) {
		struct stat st;
		assert_int_equal(stat(folder_path(names[i]), &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
	}
	coop_store_close(store);
	assert_false(folder_has("records.db-wal"));
	coop_store_close(NULL);
}

/* The file is the same to the last byte. */
static void assert_refused(int number, const char *word)
{
	struct coop_store *store = NULL;
	size_t before, after;
	char *old = folder_read("records.db", &before);

	memset(&err, 0, sizeof err);
	assert_int_equal(coop_store_open(folder, &store, &err), -number);
	assert_null(store);
	if (!strstr(err.message, word) || !strstr(err.message, "/records.db"))
		fail_msg("\"%s\" does not say \"%s\"", err.message, word);
	char *now = folder_read("records.db", &after);
	assert_int_equal(before, after);
	assert_memory_equal(old, now, before);
	free(old);
	free(now);
}

static void garbage(void **state)
{
	char bytes[8192];

	memset(bytes, 'x', sizeof bytes);
	folder_write("records.db", bytes, sizeof bytes, 0600);
	assert_refused(EBADMSG, "not a database");
	folder_write("records.db", "x", 1, 0600);
	assert_refused(EBADMSG, "not a database");
	/* One that begins well. */
	memcpy(bytes, "SQLite format 3", 16);
	folder_write("records.db", bytes, sizeof bytes, 0600);
	assert_refused(EBADMSG, "another program");
	folder_write("records.db", bytes, 50, 0600);
	assert_refused(EBADMSG, "not a database");
	assert_int_equal(unlink(folder_path("records.db")), 0);
	assert_int_equal(symlink("elsewhere", folder_path("records.db")), 0);
	struct coop_store *store = NULL;
	assert_int_equal(coop_store_open(folder, &store, &err), -ELOOP);
	assert_false(folder_has("elsewhere"));
}

static void execute(const char *text)
{
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(folder_path("records.db"), &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void other_versions(void **state)
{
	coop_store_close(open_store());
	execute("PRAGMA user_version = 2");
	assert_refused(EBADMSG, "has version 2");
	assert_false(folder_has("records.db-wal"));
	execute("PRAGMA user_version = 0");
	assert_refused(EBADMSG, "has version 0");
	execute("PRAGMA user_version = 1; PRAGMA application_id = 5");
	assert_refused(EBADMSG, "another program");
	execute("PRAGMA application_id = 0");
	assert_refused(EBADMSG, "another program");
	execute("PRAGMA application_id = 0x636f6f70");
	coop_store_close(open_store());
}

/* The newer version stands only in the write-ahead log, of a keeper that died. */
static void newer_in_the_log(void **state)
{
	sqlite3 *db = NULL;

	coop_store_close(open_store());
	assert_int_equal(sqlite3_open(folder_path("records.db"), &db), SQLITE_OK);
	(void)sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 3", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	assert_refused(EBADMSG, "has version 3");
	assert_refused(EBADMSG, "has version 3");
}

static void damaged(void **state)
{
	struct coop_store *store = open_store();
	int64_t main = add_agent(store, 0, "uid:1", "main");
	size_t size;

	for (uint64_t n = 1; n < 300; n++)
		put_ended(store, n, main);
	coop_store_close(store);
	char *bytes = folder_read("records.db", &size);
	assert_true(size > 10 * 4096);
	/* Each page in turn. */
	for (size_t at = 0; at < size; at += 4096) {
		char page[4096];
		memcpy(page, bytes + at, sizeof page);
		memset(bytes + at + (at ? 0 : 100), 0xee, sizeof page - (at ? 0 : 100));
		folder_write("records.db", bytes, size, 0600);
		assert_refused(EBADMSG, "damaged");
		memcpy(bytes + at, page, sizeof page);
	}
	/* Cut off. */
	folder_write("records.db", bytes, size / 2, 0600);
	assert_refused(EBADMSG, "damaged");
	folder_write("records.db", bytes, size, 0600);
	free(bytes);
	coop_store_close(open_store());
}

/* A keeper killed at any moment, the very first included. */
static void killed(void **state)
{
	int status;

	for (int step = 0; step < 3; step++) {
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			struct coop_store *store = open_store();
			if (step > 0)
				put(store, (uint64_t)step, add_agent(store, 0, "uid:1", "main"));
			if (step > 1 && coop_store_begin(store, &err) == 0)
				put(store, 100, 1);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_int_equal(status, 0);
	}
	struct coop_store *store = open_store();
	assert_string_equal(history_of(store, 1), "1*");
	assert_string_equal(history_of(store, 2), "2*");
	coop_store_close(store);
	/* Nothing but the first page was there. */
	assert_int_equal(unlink(folder_path("records.db")), 0);
	execute("PRAGMA journal_mode = WAL");
	coop_store_close(open_store());
}

static int try_read_only(void)
{
	struct coop_store *store = NULL;

	if (chmod(folder, 0500) < 0 || coop_store_open(folder, &store, &err) != -EACCES || store)
		return 1;
	if (!strstr(err.message, "/records.db"))
		return 2;
	/* With a database in it. */
	if (chmod(folder, 0700) < 0 || coop_store_open(folder, &store, &err) < 0)
		return 3;
	coop_store_close(store);
	store = NULL;
	if (chmod(folder, 0500) < 0)
		return 4;
	int r = coop_store_open(folder, &store, &err);
	return (r == -EACCES || r == -EROFS) && !store ? 0 : 5;
}

static void read_only_folder(void **state)
{
	folder_as_user(try_read_only);
}

static void full_disk(void **state)
{
	struct rlimit old, small;
	struct coop_store *store = open_store();
	int64_t main = add_agent(store, 0, "uid:1", "main");
	char *about = malloc(100001);
	int r = 0;

	assert_non_null(about);
	memset(about, 'x', 100000);
	about[100000] = 0;
	put(store, 1, main);
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = (struct rlimit){.rlim_cur = 1 << 20, .rlim_max = old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	for (uint64_t n = 2; n < 100 && r == 0; n++) {
		const struct coop_store_process process = {.n = n,
							   .id = "p",
							   .agent = main,
							   .principal = "uid:1",
							   .agent_path = "main",
							   .about = about};
		r = coop_store_begin(store, &err);
		if (r == 0)
			r = coop_store_put_process(store, &process, &err);
		if (r == 0)
			r = coop_store_commit(store, &err);
		else
			coop_store_rollback(store);
	}
	assert_true(r == -ENOSPC || r == -EIO); /* a limit is no full disk to SQLite */
	assert_non_null(strstr(err.message, "/records.db"));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	free(about);
	/* With space it goes on as if nothing had been. */
	put(store, 200, main);
	store = open_again(store);
	assert_int_equal(last_n(store), 200);
	coop_store_close(store);
}

static void no_memory(void **state)
{
	struct coop_store *store = NULL;
	char spec[32], *text = NULL;

	for (int i = 1; i <= 2; i++) {
		(void)snprintf(spec, sizeof spec, "alloc:%d", i);
		(void)setenv("COOP_FAULT", spec, 1);
		coop_mem_init();
		assert_int_equal(coop_store_open(folder, &store, &err), -ENOMEM);
		assert_null(store);
	}
	(void)unsetenv("COOP_FAULT");
	coop_mem_init();
	store = open_store();
	good(coop_store_set_meta(store, "k", "v", &err));
	(void)setenv("COOP_FAULT", "alloc:1", 1);
	coop_mem_init();
	assert_int_equal(coop_store_get_meta(store, "k", &text, &err), -ENOMEM);
	(void)unsetenv("COOP_FAULT");
	coop_mem_init();
	assert_null(text);
	coop_store_close(store);
}

int main(void)
{
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, folder_make, folder_remove)
	const struct CMUnitTest tests[] = {
		IN_FOLDER(modes),
		IN_FOLDER(garbage),
		IN_FOLDER(other_versions),
		IN_FOLDER(newer_in_the_log),
		IN_FOLDER(damaged),
		IN_FOLDER(killed),
		IN_FOLDER(read_only_folder),
		IN_FOLDER(full_disk),
		IN_FOLDER(no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
