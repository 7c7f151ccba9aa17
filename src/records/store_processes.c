#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "interface/err.h"
#include "records/store.h"
#include "records/store_private.h"

/* SQLite's integers have a sign. */
static int64_t clamp(uint64_t value)
{
	return value > INT64_MAX ? INT64_MAX : (int64_t)value;
}

static int refuse_n(uint64_t n, struct coop_err *err)
{
	(void)coop_err_set(err, COOP_INTERNAL, "the number %" PRIu64 " does not fit the database",
			   n);
	return -EINVAL;
}

/* In the order of PROCESS in store.c. */
static int give(sqlite3_stmt *statement,
		int (*row)(void *user, const struct coop_store_process *process), void *user)
{
	const struct coop_store_process process = {
		.n = (uint64_t)sqlite3_column_int64(statement, 0),
		.id = coop_store_text(statement, 1),
		.agent = sqlite3_column_int64(statement, 2),
		.principal = coop_store_text(statement, 3),
		.agent_path = coop_store_text(statement, 4),
		.started_at = sqlite3_column_int64(statement, 5),
		.ended_at = sqlite3_column_int64(statement, 6),
		.released = sqlite3_column_int(statement, 7) != 0,
		.about = coop_store_text(statement, 8),
		.outcome = (const char *)sqlite3_column_text(statement, 9),
	};

	return row(user, &process);
}

static int give_all(struct coop_store *store, sqlite3_stmt *statement,
		    int (*row)(void *user, const struct coop_store_process *process), void *user,
		    struct coop_err *err)
{
	int r;

	while ((r = coop_store_step(store, statement, err)) > 0) {
		r = give(statement, row, user);
		if (r)
			return coop_store_stop(statement, r < 0 ? r : 0, err);
	}
	return r;
}

int coop_store_put_process(struct coop_store *store, const struct coop_store_process *process,
			   struct coop_err *err)
{
	sqlite3_stmt *statement = store->statements[SQL_PUT_PROCESS];

	if (process->n > INT64_MAX)
		return refuse_n(process->n, err);
	(void)sqlite3_bind_int64(statement, 1, (int64_t)process->n);
	coop_store_bind_text(statement, 2, process->id);
	(void)sqlite3_bind_int64(statement, 3, process->agent);
	coop_store_bind_text(statement, 4, process->principal);
	coop_store_bind_text(statement, 5, process->agent_path);
	(void)sqlite3_bind_int64(statement, 6, process->started_at);
	(void)sqlite3_bind_int64(statement, 7, process->ended_at);
	(void)sqlite3_bind_int(statement, 8, process->released);
	coop_store_bind_text(statement, 9, process->about ? process->about : "{}");
	coop_store_bind_text(statement, 10, process->outcome);
	return coop_store_run(store, statement, err);
}

int coop_store_end_process(struct coop_store *store, uint64_t n, int64_t ended_at,
			   const char *outcome, struct coop_err *err)
{
	sqlite3_stmt *statement = store->statements[SQL_END_PROCESS];

	if (n > INT64_MAX)
		return refuse_n(n, err);
	(void)sqlite3_bind_int64(statement, 1, (int64_t)n);
	(void)sqlite3_bind_int64(statement, 2, ended_at);
	coop_store_bind_text(statement, 3, outcome);
	return coop_store_run(store, statement, err);
}

int coop_store_release(struct coop_store *store, uint64_t n, struct coop_err *err)
{
	sqlite3_stmt *statement = store->statements[SQL_RELEASE];

	if (n > INT64_MAX)
		return refuse_n(n, err);
	(void)sqlite3_bind_int64(statement, 1, (int64_t)n);
	return coop_store_run(store, statement, err);
}

int coop_store_each_open(struct coop_store *store,
			 int (*row)(void *user, const struct coop_store_process *process),
			 void *user, struct coop_err *err)
{
	return give_all(store, store->statements[SQL_EACH_OPEN], row, user, err);
}

int coop_store_lose(struct coop_store *store, int64_t ended_at, const char *outcome,
		    struct coop_err *err)
{
	sqlite3_stmt *statement = store->statements[SQL_LOSE];

	(void)sqlite3_bind_int64(statement, 1, ended_at);
	coop_store_bind_text(statement, 2, outcome);
	return coop_store_run(store, statement, err);
}

int coop_store_each_receipt(struct coop_store *store, uint64_t limit,
			    int (*row)(void *user, const struct coop_store_process *process),
			    void *user, struct coop_err *err)
{
	sqlite3_stmt *statement = store->statements[SQL_EACH_RECEIPT];

	(void)sqlite3_bind_int64(statement, 1, clamp(limit));
	return give_all(store, statement, row, user, err);
}

int coop_store_last_n(struct coop_store *store, uint64_t *ret, struct coop_err *err)
{
	int64_t n = 0;
	int r = coop_store_ask(store, SQL_LAST_N, &n, err);

	if (r == 0)
		*ret = (uint64_t)n;
	return r;
}

/* Ids must go on growing also when their rows are gone. */
static int keep_last_n(struct coop_store *store, struct coop_err *err)
{
	char digits[24];
	uint64_t n = 0;
	int r = coop_store_last_n(store, &n, err);

	if (r < 0)
		return r;
	(void)snprintf(digits, sizeof digits, "%" PRIu64, n);
	return coop_store_set_meta(store, "store.last_n", digits, err);
}

static int drop_oldest(struct coop_store *store, int64_t count, struct coop_err *err)
{
	sqlite3_stmt *statement = store->statements[SQL_PRUNE];
	int r = keep_last_n(store, err);

	if (r < 0)
		return r;
	(void)sqlite3_bind_int64(statement, 1, count);
	return coop_store_run(store, statement, err);
}

int coop_store_prune(struct coop_store *store, uint64_t keep, struct coop_err *err)
{
	int64_t ended = 0, most = clamp(keep);
	bool own;
	int r = coop_store_join(store, &own, err);

	if (r < 0)
		return r;
	r = coop_store_ask(store, SQL_COUNT_ENDED, &ended, err);
	if (r == 0 && ended > most)
		r = drop_oldest(store, ended - most, err);
	if (r == 0)
		r = coop_store_forget_agents(store, err);
	return coop_store_leave(store, own, r, err);
}

int coop_store_history(struct coop_store *store, const struct coop_store_query *query,
		       int (*row)(void *user, const struct coop_store_process *process), void *user,
		       struct coop_err *err)
{
	sqlite3_stmt *statement = store->statements[SQL_HISTORY];

	(void)sqlite3_bind_int64(statement, 1, query->agent);
	coop_store_bind_text(statement, 2, query->path);
	(void)sqlite3_bind_int64(statement, 3, query->since ? query->since : INT64_MIN);
	(void)sqlite3_bind_int64(statement, 4, query->until ? query->until : INT64_MAX);
	(void)sqlite3_bind_int64(statement, 5, query->before ? clamp(query->before) : INT64_MAX);
	(void)sqlite3_bind_int64(statement, 6, clamp(query->limit));
	return give_all(store, statement, row, user, err);
}
