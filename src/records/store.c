#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "interface/err.h"
#include "records/store.h"
#include "records/store_private.h"

#define PROCESS \
	"n, id, agent, principal, agent_path, started_at, ended_at, released, about, outcome"

static const char *const texts[SQL_COUNT] = {
	[SQL_BEGIN] = "BEGIN IMMEDIATE",
	[SQL_COMMIT] = "COMMIT",
	[SQL_ROLLBACK] = "ROLLBACK",
	[SQL_SET_META] = "INSERT OR REPLACE INTO meta (key, text) VALUES (?1, ?2)",
	[SQL_GET_META] = "SELECT text FROM meta WHERE key = ?1",
	/* Numbers only grow, so parents come first. */
	[SQL_EACH_AGENT] =
		"SELECT id, parent, principal, name, path, settings, created_at, removed_at "
		"FROM agents WHERE removed_at = 0 ORDER BY id",
	[SQL_EACH_TOKEN] = "SELECT t.id, t.agent, t.label, t.hash, t.created_at, t.expires_at, "
			   "t.revoked_at FROM tokens t JOIN agents a ON a.id = t.agent "
			   "WHERE t.revoked_at = 0 AND a.removed_at = 0 ORDER BY t.id",
	[SQL_ADD_AGENT] = "INSERT INTO agents (id, parent, principal, name, path, settings, "
			  "created_at, removed_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
	[SQL_SET_AGENT] = "UPDATE agents SET settings = ?2 WHERE id = ?1",
	[SQL_REMOVE_AGENT] = "UPDATE agents SET removed_at = ?2, settings = '{}' "
			     "WHERE id = ?1 AND removed_at = 0",
	[SQL_REVOKE_TOKENS] =
		"UPDATE tokens SET revoked_at = ?2 WHERE agent = ?1 AND revoked_at = 0",
	[SQL_ADD_TOKEN] = "INSERT INTO tokens (id, agent, label, hash, created_at, expires_at, "
			  "revoked_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
	[SQL_REVOKE_TOKEN] = "UPDATE tokens SET revoked_at = ?2 WHERE id = ?1 AND revoked_at = 0",
	[SQL_EXPIRE_TOKENS] = "DELETE FROM tokens WHERE revoked_at <> 0 OR "
			      "(expires_at <> 0 AND expires_at <= ?1)",
	[SQL_FORGET_TOKENS] = "DELETE FROM tokens WHERE agent NOT IN (SELECT id FROM agents)",
	[SQL_COUNT_REMOVED] = "SELECT count(*) FROM agents WHERE removed_at <> 0",
	/* Those above an agent that is still named stay too: history finds its rows through
	 * them. */
	[SQL_FORGET_AGENTS] = "DELETE FROM agents WHERE removed_at <> 0 AND id NOT IN ("
			      "WITH RECURSIVE named(id) AS ("
			      "SELECT DISTINCT agent FROM processes INDEXED BY processes_scan "
			      "UNION SELECT id FROM agents WHERE removed_at = 0 "
			      "UNION SELECT a.parent FROM agents a JOIN named ON a.id = named.id) "
			      "SELECT id FROM named)",
	[SQL_PUT_PROCESS] = "INSERT OR REPLACE INTO processes (" PROCESS
			    ") VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
	[SQL_END_PROCESS] = "UPDATE processes SET ended_at = ?2, outcome = ?3 WHERE n = ?1",
	[SQL_RELEASE] = "UPDATE processes SET released = 1 WHERE n = ?1",
	[SQL_EACH_OPEN] = "SELECT " PROCESS " FROM processes WHERE ended_at = 0 ORDER BY n",
	[SQL_LOSE] = "UPDATE processes SET ended_at = ?1, outcome = ?2 WHERE ended_at = 0",
	/* For each principal the newest that is too old; then all that are newer. From the index
	   but for the rows given. */
	[SQL_EACH_RECEIPT] =
		"WITH whose(who) AS (SELECT DISTINCT principal FROM agents WHERE removed_at = 0), "
		"cut(who, n) AS MATERIALIZED (SELECT who, ("
		"SELECT p.n FROM processes p INDEXED BY processes_scan "
		"CROSS JOIN agents a ON a.id = p.agent "
		"WHERE p.released = 0 AND a.principal = who AND a.removed_at = 0 "
		"ORDER BY p.n DESC LIMIT 1 OFFSET ?1) FROM whose) "
		"SELECT " PROCESS " FROM processes WHERE n IN ("
		"SELECT p.n FROM processes p INDEXED BY processes_scan "
		"CROSS JOIN agents a ON a.id = p.agent JOIN cut ON cut.who = a.principal "
		"WHERE p.released = 0 AND a.removed_at = 0 AND p.n > ifnull(cut.n, 0) "
		"AND p.n > (SELECT min(ifnull(n, 0)) FROM cut)) ORDER BY n",
	[SQL_LAST_N] =
		"SELECT max(ifnull((SELECT max(n) FROM processes), 0), "
		"ifnull((SELECT CAST(text AS INTEGER) FROM meta WHERE key = 'store.last_n'), 0))",
	[SQL_COUNT_ENDED] = "SELECT (SELECT count(*) FROM processes) - "
			    "(SELECT count(*) FROM processes WHERE ended_at = 0)",
	[SQL_PRUNE] = "DELETE FROM processes WHERE n IN (SELECT n FROM processes "
		      "WHERE ended_at <> 0 ORDER BY n LIMIT ?1)",
	/* The numbers first, from the index alone; then the rows. */
	[SQL_HISTORY] =
		"WITH RECURSIVE tree(id, path) AS (SELECT id, path FROM agents WHERE id = ?1 "
		"UNION ALL SELECT a.id, a.path FROM agents a JOIN tree ON a.parent = tree.id) "
		"SELECT " PROCESS " FROM processes WHERE n IN ("
		"SELECT n FROM processes INDEXED BY processes_scan "
		"WHERE agent IN (SELECT id FROM tree WHERE ?2 IS NULL OR path = ?2) "
		"AND started_at >= ?3 AND started_at < ?4 AND n < ?5 "
		"ORDER BY n DESC LIMIT ?6) ORDER BY n DESC",
};

/* What SQLite says, as an errno. */
static int number_of(sqlite3 *db, int code)
{
	int system = db ? sqlite3_system_errno(db) : 0;

	switch (code & 0xff) {
	case SQLITE_NOMEM:
		return ENOMEM;
	case SQLITE_FULL:
		return ENOSPC;
	case SQLITE_READONLY:
		return EROFS;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return EBADMSG;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return EBUSY;
	case SQLITE_CONSTRAINT:
		return EEXIST;
	case SQLITE_TOOBIG:
		return EMSGSIZE;
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return EACCES;
	case SQLITE_CANTOPEN:
		return system ? system : EACCES;
	case SQLITE_IOERR:
		/* The file system's own word where it is about space; all else is a broken disk. */
		return system == ENOSPC || system == EDQUOT ? ENOSPC : EIO;
	default:
		return EIO;
	}
}

int coop_store_fail(struct coop_store *store, int code, struct coop_err *err)
{
	int number = number_of(store->db, code);

	if (number == ENOMEM)
		return coop_err_no_memory(err);
	const char *said = store->db ? sqlite3_errmsg(store->db) : sqlite3_errstr(code);
	if (number == EBADMSG)
		(void)coop_err_set(
			err, COOP_UNAVAILABLE,
			"the database %s is damaged (%s): put it back from a copy, or move it "
			"away to begin a new one",
			store->path, said);
	else
		(void)coop_err_set(err, COOP_UNAVAILABLE, "the database %s: %s (%s)", store->path,
				   strerror(number), said);
	coop_err_detail(err, "errno", coop_err_errno_name(number));
	return -number;
}

int coop_store_prepare(struct coop_store *store, struct coop_err *err)
{
	for (int i = 0; i < SQL_COUNT; i++) {
		int code = sqlite3_prepare_v3(store->db, texts[i], -1, SQLITE_PREPARE_PERSISTENT,
					      &store->statements[i], NULL);
		if (code != SQLITE_OK)
			return coop_store_fail(store, code, err);
	}
	return 0;
}

void coop_store_bind_text(sqlite3_stmt *statement, int place, const char *text)
{
	/* Binding without a copy fails only for places that do not exist, or texts beyond SQLite's
	 * limit of a gigabyte; then the value is NULL, which the tables refuse. */
	if (text)
		(void)sqlite3_bind_text(statement, place, text, -1, SQLITE_STATIC);
	else
		(void)sqlite3_bind_null(statement, place);
}

int coop_store_step(struct coop_store *store, sqlite3_stmt *statement, struct coop_err *err)
{
	int code = sqlite3_step(statement);

	if (code == SQLITE_ROW)
		return 1;
	int r = code == SQLITE_DONE ? 0 : coop_store_fail(store, code, err);
	/* Bound texts were lent for the run. */
	(void)sqlite3_reset(statement);
	(void)sqlite3_clear_bindings(statement);
	return r;
}

int coop_store_run(struct coop_store *store, sqlite3_stmt *statement, struct coop_err *err)
{
	int r = coop_store_step(store, statement, err);

	return r > 0 ? coop_store_stop(statement, 0, err) : r;
}

int coop_store_stop(sqlite3_stmt *statement, int status, struct coop_err *err)
{
	(void)sqlite3_reset(statement);
	(void)sqlite3_clear_bindings(statement);
	if (status == -ENOMEM)
		(void)coop_err_no_memory(err);
	else if (status < 0)
		(void)coop_err_set(err, COOP_INTERNAL, "a row of the database was not taken: %s",
				   strerror(-status));
	return status;
}

const char *coop_store_text(sqlite3_stmt *statement, int column)
{
	const char *text = (const char *)sqlite3_column_text(statement, column);

	return text ? text : "";
}

int coop_store_ask(struct coop_store *store, enum coop_store_sql which, int64_t *ret,
		   struct coop_err *err)
{
	sqlite3_stmt *statement = store->statements[which];
	int r = coop_store_step(store, statement, err);

	if (r <= 0)
		return r;
	*ret = sqlite3_column_int64(statement, 0);
	return coop_store_stop(statement, 0, err);
}

int coop_store_begin(struct coop_store *store, struct coop_err *err)
{
	return coop_store_run(store, store->statements[SQL_BEGIN], err);
}

int coop_store_commit(struct coop_store *store, struct coop_err *err)
{
	/* A full or broken disk makes SQLite roll back by itself. */
	if (sqlite3_get_autocommit(store->db)) {
		(void)coop_err_set(
			err, COOP_UNAVAILABLE,
			"the database %s gave up the transaction: nothing of it was kept",
			store->path);
		return -EIO;
	}
	int r = coop_store_run(store, store->statements[SQL_COMMIT], err);
	if (r < 0)
		coop_store_rollback(store);
	return r;
}

void coop_store_rollback(struct coop_store *store)
{
	struct coop_err err;

	if (!sqlite3_get_autocommit(store->db))
		(void)coop_store_run(store, store->statements[SQL_ROLLBACK], &err);
}

int coop_store_join(struct coop_store *store, bool *ret_own, struct coop_err *err)
{
	*ret_own = sqlite3_get_autocommit(store->db);
	return *ret_own ? coop_store_begin(store, err) : 0;
}

int coop_store_leave(struct coop_store *store, bool own, int status, struct coop_err *err)
{
	if (!own)
		return status;
	if (status == 0)
		return coop_store_commit(store, err);
	coop_store_rollback(store);
	return status;
}

int coop_store_set_meta(struct coop_store *store, const char *key, const char *text,
			struct coop_err *err)
{
	sqlite3_stmt *statement = store->statements[SQL_SET_META];

	coop_store_bind_text(statement, 1, key);
	coop_store_bind_text(statement, 2, text);
	return coop_store_run(store, statement, err);
}

int coop_store_get_meta(struct coop_store *store, const char *key, char **ret, struct coop_err *err)
{
	sqlite3_stmt *statement = store->statements[SQL_GET_META];
	char *copy = NULL;

	coop_store_bind_text(statement, 1, key);
	int r = coop_store_step(store, statement, err);
	if (r > 0) {
		copy = coop_mem_strdup(coop_store_text(statement, 0));
		r = coop_store_stop(statement, copy ? 0 : -ENOMEM, err);
	}
	if (r == 0)
		*ret = copy;
	return r;
}
