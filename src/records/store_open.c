#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "interface/err.h"
#include "records/store.h"
#include "records/store_private.h"

#define APPLICATION 0x636f6f70 /* "coop" */
#define HEADER_SIZE 100u
#define BUSY_MS 250
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

/* Cheap to write above all: `processes` and `processes_scan`, from which questions are answered
 * without reading the long rows, grow at their ends; an end touches only the row and the small
 * `processes_open`. `agents` is a tree by `parent`; a parent's id is the smaller one, so it cannot
 * go in circles. */
static const char schema[] =
	"CREATE TABLE meta (key TEXT PRIMARY KEY NOT NULL, text TEXT NOT NULL) WITHOUT ROWID;"
	"CREATE TABLE agents (id INTEGER PRIMARY KEY AUTOINCREMENT, "
	"parent INTEGER NOT NULL CHECK (parent < id), principal TEXT NOT NULL, name TEXT NOT NULL, "
	"path TEXT NOT NULL, settings TEXT NOT NULL, created_at INTEGER NOT NULL, "
	"removed_at INTEGER NOT NULL);"
	"CREATE INDEX agents_parent ON agents (parent);"
	"CREATE TABLE tokens (id INTEGER PRIMARY KEY AUTOINCREMENT, agent INTEGER NOT NULL, "
	"label TEXT NOT NULL, hash BLOB NOT NULL, created_at INTEGER NOT NULL, "
	"expires_at INTEGER NOT NULL, revoked_at INTEGER NOT NULL);"
	"CREATE INDEX tokens_agent ON tokens (agent);"
	"CREATE TABLE processes (n INTEGER PRIMARY KEY, id TEXT NOT NULL, agent INTEGER NOT NULL, "
	"principal TEXT NOT NULL, agent_path TEXT NOT NULL, started_at INTEGER NOT NULL, "
	"ended_at INTEGER NOT NULL, released INTEGER NOT NULL, about TEXT NOT NULL, outcome TEXT);"
	"CREATE INDEX processes_scan ON processes (n, agent, started_at, released);"
	"CREATE INDEX processes_open ON processes (n) WHERE ended_at = 0;"
	"PRAGMA application_id = " TEXT(APPLICATION) ";"
						     "PRAGMA user_version = " TEXT(
							     COOP_STORE_VERSION) ";";

static const char settings[] = "PRAGMA journal_mode = WAL;"
			       "PRAGMA synchronous = NORMAL;"
			       "PRAGMA cache_size = -2000;"
			       "PRAGMA mmap_size = 0;"
			       "PRAGMA journal_size_limit = 16777216;"
			       "PRAGMA temp_store = MEMORY;"
			       "PRAGMA trusted_schema = OFF;";

static int refuse(const char *path, const char *why, struct coop_err *err)
{
	(void)coop_err_set(
		err, COOP_UNAVAILABLE,
		"the database %s %s; it was not changed: move it away to begin a new one", path,
		why);
	coop_err_detail(err, "errno", "EBADMSG");
	return -EBADMSG;
}

static int failed(const char *path, int number, struct coop_err *err)
{
	(void)coop_err_set(err, COOP_UNAVAILABLE, "the database %s cannot be opened: %s", path,
			   number == ELOOP ? "it is a link; it must be a file" : strerror(number));
	coop_err_detail(err, "errno", coop_err_errno_name(number));
	return -number;
}

/* 1: it is ours, or -errno. */
static int check_version(const char *path, int64_t application, int64_t version,
			 struct coop_err *err)
{
	char why[120];

	if (application != APPLICATION)
		return refuse(path, "belongs to another program", err);
	if (version == COOP_STORE_VERSION)
		return 1;
	(void)snprintf(why, sizeof why,
		       version > COOP_STORE_VERSION
			       ? "has version %lld, this coop knows up to %d: use the newer coop"
			       : "has version %lld, this coop needs %d",
		       (long long)version, COOP_STORE_VERSION);
	return refuse(path, why, err);
}

static uint32_t big_endian(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
	       bytes[3];
}

/* Makes the file, so that its mode does not depend on the umask, or looks at its header before
 * SQLite, which writes next to it or into it as soon as it reads. 1: it is a database, 0: it is
 * empty, or -errno. */
static int look(const char *path, struct coop_err *err)
{
	uint8_t header[HEADER_SIZE];
	struct stat st;
	COOP_AUTO_FD int fd =
		open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);

	if (fd < 0 || fstat(fd, &st) < 0)
		return failed(path, errno, err);
	if (!S_ISREG(st.st_mode))
		return refuse(path, "is not a file", err);
	ssize_t n = st.st_size ? pread(fd, header, sizeof header, 0) : 0;
	if (n < 0)
		return failed(path, errno, err);
	if (st.st_size &&
	    (n < (ssize_t)sizeof header || memcmp(header, "SQLite format 3", 16) != 0))
		return refuse(path, "is not a database", err);
	/* One without a mark may be ours still, the rest being in the write-ahead log. */
	if (st.st_size && big_endian(header + 68)) {
		int r = check_version(path, big_endian(header + 68), big_endian(header + 60), err);
		if (r < 0)
			return r;
	}
	if ((st.st_mode & 0777) != 0600 && fchmod(fd, 0600) < 0)
		return failed(path, errno, err);
	return st.st_size > 0;
}

static int execute(struct coop_store *store, const char *text, struct coop_err *err)
{
	int code = sqlite3_exec(store->db, text, NULL, NULL, NULL);

	return code == SQLITE_OK ? 0 : coop_store_fail(store, code, err);
}

static int make_schema(struct coop_store *store, struct coop_err *err)
{
	int r = execute(store, "BEGIN IMMEDIATE", err);

	if (r == 0)
		r = execute(store, schema, err);
	if (r == 0)
		r = execute(store, "COMMIT", err);
	return r;
}

/* The first column of the first row. */
static int ask(struct coop_store *store, const char *text, int64_t *ret_number, char *ret_text,
	       size_t size, struct coop_err *err)
{
	sqlite3_stmt *statement = NULL;
	int code = sqlite3_prepare_v2(store->db, text, -1, &statement, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_step(statement);
	if (code == SQLITE_ROW) {
		*ret_number = sqlite3_column_int64(statement, 0);
		if (ret_text)
			(void)snprintf(ret_text, size, "%s", coop_store_text(statement, 0));
	}
	int r = code == SQLITE_ROW ? 0 : coop_store_fail(store, code, err);
	(void)sqlite3_finalize(statement);
	return r;
}

/* With the write-ahead log taken into account. 1: it is ours and whole, 0: it is empty, made by a
 * keeper that died at once, or -errno. */
static int check(struct coop_store *store, struct coop_err *err)
{
	int64_t application = 0, version = 0, tables = 0, page = 0, ignored;
	char said[160] = "";
	struct stat st;
	int r = ask(store, "PRAGMA application_id", &application, NULL, 0, err);

	if (r == 0)
		r = ask(store, "PRAGMA user_version", &version, NULL, 0, err);
	if (r == 0)
		r = ask(store, "SELECT count(*) FROM sqlite_schema", &tables, NULL, 0, err);
	if (r < 0 || (!application && !version && !tables))
		return r;
	r = check_version(store->path, application, version, err);
	if (r < 0)
		return r;
	/* A file that ends inside a page reads as if zeros followed, which no check of SQLite's
	 * finds. */
	r = ask(store, "PRAGMA page_size", &page, NULL, 0, err);
	if (r == 0 && (stat(store->path, &st) < 0 || page <= 0 || st.st_size % page))
		return refuse(store->path, "is damaged: its end is missing", err);
	if (r == 0)
		r = ask(store, "PRAGMA quick_check(1)", &ignored, said, sizeof said, err);
	if (r < 0)
		return r;
	return strcmp(said, "ok") != 0 ? refuse(store->path, "is damaged", err) : 1;
}

/* `exists`: there is something already. 0 or -errno. */
static int set_up(struct coop_store *store, bool exists, struct coop_err *err)
{
	int code = sqlite3_open_v2(
		store->path, &store->db,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, NULL);

	if (code != SQLITE_OK)
		return coop_store_fail(store, code, err);
	(void)sqlite3_busy_timeout(store->db, BUSY_MS);
	/* What is refused below must not be touched by closing it either. */
	(void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, (int)exists, NULL);
	int whole = exists ? check(store, err) : 0;
	int r = whole < 0 ? whole : execute(store, settings, err);
	if (r == 0 && !whole)
		r = make_schema(store, err);
	if (r == 0)
		r = coop_store_prepare(store, err);
	if (r == 0)
		(void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
	return r;
}

int coop_store_open(const char *dir, struct coop_store **ret, struct coop_err *err)
{
	struct coop_store *store = coop_mem_zalloc(sizeof *store);

	if (!store)
		return coop_err_no_memory(err);
	size_t size = strlen(dir) + sizeof "/records.db";
	store->path = coop_mem_alloc(size);
	if (!store->path) {
		free(store);
		return coop_err_no_memory(err);
	}
	(void)snprintf(store->path, size, "%s/records.db", dir);
	int r = look(store->path, err);
	if (r >= 0)
		r = set_up(store, r > 0, err);
	if (r < 0) {
		coop_store_close(store);
		return r;
	}
	*ret = store;
	return 0;
}

void coop_store_close(struct coop_store *store)
{
	if (!store)
		return;
	for (int i = 0; i < SQL_COUNT; i++)
		(void)sqlite3_finalize(store->statements[i]);
	(void)sqlite3_close(store->db);
	free(store->path);
	free(store);
}
