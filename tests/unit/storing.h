/* What the tests of the database share. Included after cmocka.h. */
#ifndef COOP_TESTS_STORING_H
#define COOP_TESTS_STORING_H

#include "folder.h"
#include "records/store.h"

static struct coop_err err;

/* Rows as one text: "3 2 1"; a star behind those that have not ended. */
static char seen[4096];

static inline void good(int status)
{
	if (status < 0)
		fail_msg("%d: %s", status, err.message);
}

static inline struct coop_store *open_store(void)
{
	struct coop_store *store = NULL;

	good(coop_store_open(folder, &store, &err));
	return store;
}

static inline struct coop_store *open_again(struct coop_store *store)
{
	coop_store_close(store);
	return open_store();
}

static inline int64_t add_agent(struct coop_store *store, int64_t parent, const char *principal,
				const char *path)
{
	const struct coop_store_agent agent = {.parent = parent,
					       .principal = principal,
					       .name = path,
					       .path = path,
					       .settings = "{\"a\":1}",
					       .created_at = 5};
	int64_t id = 0;

	good(coop_store_add_agent(store, &agent, &id, &err));
	assert_true(id > parent);
	return id;
}

static inline void put(struct coop_store *store, uint64_t n, int64_t agent)
{
	char id[32], about[64];
	const struct coop_store_process process = {.n = n,
						   .id = id,
						   .agent = agent,
						   .principal = "uid:1",
						   .agent_path = "main",
						   .started_at = 1000 + (int64_t)n,
						   .about = about};

	(void)snprintf(id, sizeof id, "p-%llu", (unsigned long long)n);
	(void)snprintf(about, sizeof about, "{\"n\":%llu}", (unsigned long long)n);
	good(coop_store_put_process(store, &process, &err));
}

static inline void put_ended(struct coop_store *store, uint64_t n, int64_t agent)
{
	put(store, n, agent);
	good(coop_store_end_process(store, n, 2000 + (int64_t)n, "{\"exit\":0}", &err));
}

static inline int see_process(void *user, const struct coop_store_process *process)
{
	size_t used = strlen(seen);

	(void)snprintf(seen + used, sizeof seen - used, "%s%llu%s", used ? " " : "",
		       (unsigned long long)process->n, process->outcome ? "" : "*");
	return 0;
}

static inline const char *history(struct coop_store *store, const struct coop_store_query *query)
{
	seen[0] = 0;
	good(coop_store_history(store, query, see_process, NULL, &err));
	return seen;
}

static inline const char *history_of(struct coop_store *store, int64_t agent)
{
	const struct coop_store_query query = {.agent = agent, .limit = 100};

	return history(store, &query);
}

static inline uint64_t last_n(struct coop_store *store)
{
	uint64_t n = 99;

	good(coop_store_last_n(store, &n, &err));
	return n;
}

#endif
