#include <string.h>

#include "base/io/log.h"
#include "records/store.h"
#include "records/store_private.h"

int coop_store_each_agent(struct coop_store *store,
			  int (*row)(void *user, const struct coop_store_agent *agent), void *user,
			  struct coop_err *err)
{
	sqlite3_stmt *statement = store->statements[SQL_EACH_AGENT];
	int r;

	while ((r = coop_store_step(store, statement, err)) > 0) {
		const struct coop_store_agent agent = {
			.id = sqlite3_column_int64(statement, 0),
			.parent = sqlite3_column_int64(statement, 1),
			.principal = coop_store_text(statement, 2),
			.name = coop_store_text(statement, 3),
			.path = coop_store_text(statement, 4),
			.settings = coop_store_text(statement, 5),
			.created_at = sqlite3_column_int64(statement, 6),
			.removed_at = sqlite3_column_int64(statement, 7),
		};
		r = row(user, &agent);
		if (r < 0)
			return coop_store_stop(statement, r, err);
	}
	return r;
}

int coop_store_each_token(struct coop_store *store,
			  int (*row)(void *user, const struct coop_store_token *token), void *user,
			  struct coop_err *err)
{
	sqlite3_stmt *statement = store->statements[SQL_EACH_TOKEN];
	int r;

	while ((r = coop_store_step(store, statement, err)) > 0) {
		struct coop_store_token token = {
			.id = sqlite3_column_int64(statement, 0),
			.agent = sqlite3_column_int64(statement, 1),
			.label = coop_store_text(statement, 2),
			.created_at = sqlite3_column_int64(statement, 4),
			.expires_at = sqlite3_column_int64(statement, 5),
			.revoked_at = sqlite3_column_int64(statement, 6),
		};
		const void *hash = sqlite3_column_blob(statement, 3);
		/* A token that opens nothing any more is no reason to lose all others. */
		if (!hash || sqlite3_column_bytes(statement, 3) != (int)COOP_HASH_SIZE) {
			coop_log(COOP_LOG_ERROR, "a token cannot be read and is left out id=%lld",
				 (long long)token.id);
			continue;
		}
		memcpy(token.hash, hash, COOP_HASH_SIZE);
		r = row(user, &token);
		if (r < 0)
			return coop_store_stop(statement, r, err);
	}
	return r;
}

/* Numbers are never used again, also those of rows that are gone: AUTOINCREMENT sees to it. */
static void bind_id(sqlite3_stmt *statement, int64_t id)
{
	if (id)
		(void)sqlite3_bind_int64(statement, 1, id);
	else
		(void)sqlite3_bind_null(statement, 1);
}

static int run_insert(struct coop_store *store, sqlite3_stmt *statement, int64_t *ret_id,
		      struct coop_err *err)
{
	int r = coop_store_run(store, statement, err);

	if (r == 0 && ret_id)
		*ret_id = sqlite3_last_insert_rowid(store->db);
	return r;
}

int coop_store_add_agent(struct coop_store *store, const struct coop_store_agent *agent,
			 int64_t *ret_id, struct coop_err *err)
{
	sqlite3_stmt *statement = store->statements[SQL_ADD_AGENT];

	bind_id(statement, agent->id);
	(void)sqlite3_bind_int64(statement, 2, agent->parent);
	coop_store_bind_text(statement, 3, agent->principal);
	coop_store_bind_text(statement, 4, agent->name);
	coop_store_bind_text(statement, 5, agent->path);
	coop_store_bind_text(statement, 6, agent->settings ? agent->settings : "{}");
	(void)sqlite3_bind_int64(statement, 7, agent->created_at);
	(void)sqlite3_bind_int64(statement, 8, agent->removed_at);
	return run_insert(store, statement, ret_id, err);
}

int coop_store_set_agent(struct coop_store *store, int64_t id, const char *settings,
			 struct coop_err *err)
{
	sqlite3_stmt *statement = store->statements[SQL_SET_AGENT];

	(void)sqlite3_bind_int64(statement, 1, id);
	coop_store_bind_text(statement, 2, settings);
	return coop_store_run(store, statement, err);
}

/* Statements whose first place is an id and whose second is a moment. */
static int run_at(struct coop_store *store, enum coop_store_sql which, int64_t id, int64_t at,
		  struct coop_err *err)
{
	sqlite3_stmt *statement = store->statements[which];

	(void)sqlite3_bind_int64(statement, 1, id);
	(void)sqlite3_bind_int64(statement, 2, at);
	return coop_store_run(store, statement, err);
}

int coop_store_remove_agent(struct coop_store *store, int64_t id, int64_t at, struct coop_err *err)
{
	bool own;
	int r = coop_store_join(store, &own, err);

	if (r < 0)
		return r;
	r = run_at(store, SQL_REMOVE_AGENT, id, at, err);
	if (r == 0)
		r = run_at(store, SQL_REVOKE_TOKENS, id, at, err);
	return coop_store_leave(store, own, r, err);
}

int coop_store_add_token(struct coop_store *store, const struct coop_store_token *token,
			 int64_t *ret_id, struct coop_err *err)
{
	sqlite3_stmt *statement = store->statements[SQL_ADD_TOKEN];

	bind_id(statement, token->id);
	(void)sqlite3_bind_int64(statement, 2, token->agent);
	coop_store_bind_text(statement, 3, token->label ? token->label : "");
	(void)sqlite3_bind_blob(statement, 4, token->hash, (int)COOP_HASH_SIZE, SQLITE_STATIC);
	(void)sqlite3_bind_int64(statement, 5, token->created_at);
	(void)sqlite3_bind_int64(statement, 6, token->expires_at);
	(void)sqlite3_bind_int64(statement, 7, token->revoked_at);
	return run_insert(store, statement, ret_id, err);
}

int coop_store_revoke_token(struct coop_store *store, int64_t id, int64_t at, struct coop_err *err)
{
	return run_at(store, SQL_REVOKE_TOKEN, id, at, err);
}

int coop_store_forget_agents(struct coop_store *store, struct coop_err *err)
{
	int64_t removed = 0;
	int r = coop_store_ask(store, SQL_COUNT_REMOVED, &removed, err);

	/* Looking for who is named goes through all processes: not for nothing. */
	if (r == 0 && removed)
		r = coop_store_run(store, store->statements[SQL_FORGET_AGENTS], err);
	if (r == 0 && removed)
		r = coop_store_run(store, store->statements[SQL_FORGET_TOKENS], err);
	return r;
}

int coop_store_forget_tokens(struct coop_store *store, int64_t now, struct coop_err *err)
{
	sqlite3_stmt *statement = store->statements[SQL_EXPIRE_TOKENS];

	(void)sqlite3_bind_int64(statement, 1, now);
	return coop_store_run(store, statement, err);
}
