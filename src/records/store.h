/* The database: agents, tokens, and one row for each process that was started. SQLite in WAL mode,
 * `<dir>/records.db`.
 *
 * Everything here may wait for a disk. coop_store_open and the loaders run before the loop does;
 * all else on the helper thread, one call at a time. Texts given in are read during the call only;
 * rows given to a callback live until it returns. Functions return 0 or a negative errno (-ENOSPC,
 * -EIO, -EROFS, -ENOMEM, -EBADMSG corrupt, …) with the error filled. */
#ifndef COOP_RECORDS_STORE_H
#define COOP_RECORDS_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "interface/err.h"
#include "records/secret.h"

#define COOP_STORE_VERSION 1 /* PRAGMA user_version */

struct coop_store;

struct coop_store_agent {
	int64_t id;     /* never used again */
	int64_t parent; /* 0: the principal's first */
	const char *principal, *name, *path;
	const char *settings;           /* JSON object: quotas, grants, policy */
	int64_t created_at, removed_at; /* ms; 0: not */
};

struct coop_store_token {
	int64_t id;
	int64_t agent;
	const char *label; /* "" if none */
	uint8_t hash[COOP_HASH_SIZE];
	int64_t created_at, expires_at, revoked_at; /* ms; 0: never / not */
};

struct coop_store_process {
	uint64_t n; /* of the id: the key */
	const char *id;
	int64_t agent;
	const char *principal, *agent_path;
	int64_t started_at, ended_at; /* ms; 0: not ended */
	bool released;
	const char *about;   /* JSON object: what was asked */
	const char *outcome; /* JSON object: how it ended; NULL while it runs */
};

/* Opens or makes it. A file that is no database, is damaged, or has a newer user_version is refused
 * with a sentence that names the file and says what to do; it is never changed or replaced then. */
int coop_store_open(const char *dir, struct coop_store **ret, struct coop_err *err);
void coop_store_close(struct coop_store *store); /* NULL is fine */

/* ---- at start ---- */

/* All agents that are not removed, parents before children. A callback that returns < 0 ends the
 * walk with that. */
int coop_store_each_agent(struct coop_store *store,
			  int (*row)(void *user, const struct coop_store_agent *agent), void *user,
			  struct coop_err *err);
/* All tokens that are not revoked and whose agent is not removed. */
int coop_store_each_token(struct coop_store *store,
			  int (*row)(void *user, const struct coop_store_token *token), void *user,
			  struct coop_err *err);
/* Rows without an end, oldest first. */
int coop_store_each_open(struct coop_store *store,
			 int (*row)(void *user, const struct coop_store_process *process),
			 void *user, struct coop_err *err);
/* Rows without an end belong to a keeper that died: they get this end. */
int coop_store_lose(struct coop_store *store, int64_t ended_at, const char *outcome,
		    struct coop_err *err);
/* The newest `limit` rows of each principal that are not released, oldest first (by n, over all
 * principals). Rows of removed and of unknown agents are left out; whose a row is its agent
 * says. */
int coop_store_each_receipt(struct coop_store *store, uint64_t limit,
			    int (*row)(void *user, const struct coop_store_process *process),
			    void *user, struct coop_err *err);
/* The largest n there ever was, pruned or not; 0: none. */
int coop_store_last_n(struct coop_store *store, uint64_t *ret, struct coop_err *err);

/* ---- changes ---- */

int coop_store_begin(struct coop_store *store, struct coop_err *err);
int coop_store_commit(struct coop_store *store, struct coop_err *err); /* rolls back if it fails */
void coop_store_rollback(struct coop_store *store);

/* Adds, or replaces the row of that n. */
int coop_store_put_process(struct coop_store *store, const struct coop_store_process *process,
			   struct coop_err *err);
/* How it ended; no row of that n is no error. */
int coop_store_end_process(struct coop_store *store, uint64_t n, int64_t ended_at,
			   const char *outcome, struct coop_err *err);
int coop_store_release(struct coop_store *store, uint64_t n, struct coop_err *err);
/* Takes milliseconds: not for each row. Keeps the newest `keep` rows that have ended; then forgets
 * removed agents (and their tokens) that no row names. */
int coop_store_prune(struct coop_store *store, uint64_t keep, struct coop_err *err);

/* An id of 0: the next free one. Otherwise that one, which must be new, and larger than the
 * parent's. ret_id may be NULL. */
int coop_store_add_agent(struct coop_store *store, const struct coop_store_agent *agent,
			 int64_t *ret_id, struct coop_err *err);
/* Here and below: no row of that id is no error. */
int coop_store_set_agent(struct coop_store *store, int64_t id, const char *settings,
			 struct coop_err *err);
/* This one alone; its tokens are revoked with it, and its settings, which may hold secrets, are
 * forgotten. */
int coop_store_remove_agent(struct coop_store *store, int64_t id, int64_t at, struct coop_err *err);
int coop_store_add_token(struct coop_store *store, const struct coop_store_token *token,
			 int64_t *ret_id, struct coop_err *err);
int coop_store_revoke_token(struct coop_store *store, int64_t id, int64_t at, struct coop_err *err);

/* Deletes tokens that are revoked, or expired at `now`. */
int coop_store_forget_tokens(struct coop_store *store, int64_t now, struct coop_err *err);

/* Small texts under a key. get: *ret is the caller's to free, NULL if there is none. */
int coop_store_set_meta(struct coop_store *store, const char *key, const char *text,
			struct coop_err *err);
int coop_store_get_meta(struct coop_store *store, const char *key, char **ret,
			struct coop_err *err);

/* ---- questions ---- */

struct coop_store_query {
	int64_t agent;    /* whose: this agent's own and its descendants', removed ones included */
	const char *path; /* only agents of that path; NULL: all of them */
	int64_t since, until; /* started at or after / before; ms; 0: no bound */
	uint64_t before;      /* only smaller n; 0: from the newest */
	uint64_t limit;
};

/* Newest first. A callback that returns > 0 has enough; < 0 ends the walk with that. */
int coop_store_history(struct coop_store *store, const struct coop_store_query *query,
		       int (*row)(void *user, const struct coop_store_process *process), void *user,
		       struct coop_err *err);

#endif
