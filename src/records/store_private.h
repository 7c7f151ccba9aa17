/* What the files of the store share. Not for others. */
#ifndef COOP_RECORDS_STORE_PRIVATE_H
#define COOP_RECORDS_STORE_PRIVATE_H

#include <sqlite3.h>

#include "records/store.h"

/* Statements that are prepared once, by their place in the table of store.c. */
enum coop_store_sql {
	SQL_BEGIN,
	SQL_COMMIT,
	SQL_ROLLBACK,
	SQL_SET_META,
	SQL_GET_META,
	SQL_EACH_AGENT,
	SQL_EACH_TOKEN,
	SQL_ADD_AGENT,
	SQL_SET_AGENT,
	SQL_REMOVE_AGENT,
	SQL_REVOKE_TOKENS,
	SQL_ADD_TOKEN,
	SQL_REVOKE_TOKEN,
	SQL_EXPIRE_TOKENS,
	SQL_FORGET_TOKENS,
	SQL_COUNT_REMOVED,
	SQL_FORGET_AGENTS,
	SQL_PUT_PROCESS,
	SQL_END_PROCESS,
	SQL_RELEASE,
	SQL_EACH_OPEN,
	SQL_LOSE,
	SQL_EACH_RECEIPT,
	SQL_LAST_N,
	SQL_COUNT_ENDED,
	SQL_PRUNE,
	SQL_HISTORY,
	SQL_COUNT,
};

struct coop_store {
	sqlite3 *db;
	char *path;
	sqlite3_stmt *statements[SQL_COUNT];
};

/* Fills the error from the connection's last failure with `code`, and returns the errno that
 * fits. */
int coop_store_fail(struct coop_store *store, int code, struct coop_err *err);

/* Prepares all of them. 0 or -errno. */
int coop_store_prepare(struct coop_store *store, struct coop_err *err);

/* Text that is read during the statement's run only; NULL is NULL. */
void coop_store_bind_text(sqlite3_stmt *statement, int place, const char *text);

/* Runs a statement that gives no rows. 0 or -errno. */
int coop_store_run(struct coop_store *store, sqlite3_stmt *statement, struct coop_err *err);

/* 1 with a row, 0 at the end (the statement is reset), -errno. */
int coop_store_step(struct coop_store *store, sqlite3_stmt *statement, struct coop_err *err);

/* Ends a walk over rows with what its callback said. */
int coop_store_stop(sqlite3_stmt *statement, int status, struct coop_err *err);

/* A column's text, "" for NULL; lives until the next step. */
const char *coop_store_text(sqlite3_stmt *statement, int column);

/* The one number that the statement gives. 0 or -errno. */
int coop_store_ask(struct coop_store *store, enum coop_store_sql which, int64_t *ret,
		   struct coop_err *err);

/* Several statements that must all happen: a transaction of their own, unless the caller has begun
 * one. */
int coop_store_join(struct coop_store *store, bool *ret_own, struct coop_err *err);
int coop_store_leave(struct coop_store *store, bool own, int status, struct coop_err *err);

/* Forgets removed agents, with their tokens, that no process and no other agent names. */
int coop_store_forget_agents(struct coop_store *store, struct coop_err *err);

#endif
