#include "doors/http/control/sandboxes_query.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "doors/http/net/target.h"

#define AFTER_MAX ((UINT64_C(1) << 53) - 1)
#define METADATA "query[metadata]["
#define STATE "query[state][]"

/* A query on its way. What is wrong with it is said to the exchange at once. */
struct reading {
	struct coop_http_exchange *exchange;
	unsigned kinds;
	struct coop_sandbox_query *query;
	bool limit, after, sandbox; /* seen */
};

static int refuse(struct reading *reading, const char *why)
{
	coop_http_refuse(reading->exchange, 400, "invalid_argument", "%s", why);
	return -EINVAL;
}

static int no_memory(struct reading *reading)
{
	coop_http_refuse(reading->exchange, 500, "internal", "no memory is left for this");
	return -ENOMEM;
}

/* `seen` is of a parameter that can be there once. */
static int take_number(struct reading *reading, const char *name, bool *seen, uint64_t max,
		       uint64_t *ret)
{
	if (*seen) {
		coop_http_refuse(reading->exchange, 400, "invalid_argument", "%s is there twice",
				 name);
		return -EINVAL;
	}
	*seen = true;
	return coop_query_uint(reading->exchange->query, name, max, ret) < 0 ? -ERANGE : 0;
}

static int take_limit(struct reading *reading)
{
	int r = take_number(reading, "limit", &reading->limit, COOP_SANDBOX_PAGE_MAX,
			    &reading->query->limit);

	if (r == -ERANGE || (r == 0 && !reading->query->limit))
		return refuse(reading, "limit must be an integer from 1 to 1000");
	return r;
}

static int take_next(struct reading *reading)
{
	int r = take_number(reading, "next_token", &reading->after, AFTER_MAX,
			    &reading->query->after);

	return r == -ERANGE ? refuse(reading, "next_token must be one that an earlier answer had")
			    : r;
}

/* States as the SDKs know them. All that there is of a sandbox here is ready, or gone. */
static int take_state(struct reading *reading, const char *value)
{
	static const char *const others[] = {"creating", "checkpointing", "restoring", "stopping",
					     "stopped",  "pausing",       "paused",    "resuming",
					     "failed",   "killed",        "expired"};
	bool live = !strcmp(value, "running") || !strcmp(value, "ready"), known = live;

	for (size_t i = 0; !known && i < sizeof others / sizeof others[0]; i++)
		known = !strcmp(value, others[i]);
	if (!known)
		return refuse(reading, STATE
			      " must be running, ready, paused or another state of a sandbox");
	reading->query->by_state = true;
	reading->query->live |= live;
	return 0;
}

/* `rest` is what stands behind the opening bracket: SDKs put the name there as it is, with whatever
 * brackets it may have, so it ends at the last one. */
static int take_metadata(struct reading *reading, const char *rest, const char *value)
{
	struct coop_sandbox_query *query = reading->query;
	size_t size = strlen(rest) - 1;

	if (!query->metadata)
		query->metadata = json_array();
	if (json_array_size(query->metadata) == COOP_SANDBOX_FILTERS_MAX)
		return refuse(reading, "the query may name 64 words of metadata at most");
	json_t *pair = json_pack("[s%, s]", rest, size, value);
	return json_array_append_new(query->metadata, pair) < 0 ? no_memory(reading) : 0;
}

static bool is_metadata(const char *name)
{
	size_t size = strlen(name), before = strlen(METADATA);

	/* The name between the brackets has a byte at least. */
	return !strncmp(name, METADATA, before) && size > before + 1 && name[size - 1] == ']';
}

static int take(struct reading *reading, const char *name, const char *value)
{
	if ((reading->kinds & COOP_QUERY_PAGE) && !strcmp(name, "limit"))
		return take_limit(reading);
	if ((reading->kinds & COOP_QUERY_PAGE) && !strcmp(name, "next_token"))
		return take_next(reading);
	if ((reading->kinds & COOP_QUERY_SELECT) && !strcmp(name, STATE))
		return take_state(reading, value);
	if ((reading->kinds & COOP_QUERY_SELECT) && is_metadata(name))
		return take_metadata(reading, name + strlen(METADATA), value);
	if ((reading->kinds & COOP_QUERY_SANDBOX) && !strcmp(name, "sandbox_id"))
		return 0; /* lists of which nothing is ever in have nothing of that one, either */
	coop_http_refuse(reading->exchange, 400, "invalid_argument",
			 "%.100s is no parameter of this list", name);
	return -EINVAL;
}

bool coop_sandbox_query_read(struct coop_http_exchange *exchange, unsigned kinds,
			     struct coop_sandbox_query *ret)
{
	struct reading reading = {.exchange = exchange, .kinds = kinds, .query = ret};
	const char *at = exchange->query;
	int r;

	*ret = (struct coop_sandbox_query){.limit = COOP_SANDBOX_PAGE};
	do {
		COOP_AUTO_FREE char *name = NULL;
		COOP_AUTO_FREE char *value = NULL;
		r = coop_query_next(&at, &name, &value);
		if (r == -ENOMEM)
			(void)no_memory(&reading);
		else if (r < 0)
			(void)refuse(&reading, "the query has a broken escape");
		else if (r > 0)
			r = take(&reading, name, value) < 0 ? -EINVAL : 1;
	} while (r > 0);
	if (r < 0)
		coop_sandbox_query_clear(ret);
	return r == 0;
}

void coop_sandbox_query_clear(struct coop_sandbox_query *query)
{
	json_decref(query->metadata);
	query->metadata = NULL;
}

bool coop_sandbox_query_fits(const struct coop_sandbox_query *query, const json_t *metadata)
{
	if (query->by_state && !query->live)
		return false;
	for (size_t i = 0; i < json_array_size(query->metadata); i++) {
		const json_t *pair = json_array_get(query->metadata, i);
		const char *name = json_string_value(json_array_get(pair, 0));
		if (!json_equal(json_object_get(metadata, name), json_array_get(pair, 1)))
			return false;
	}
	return true;
}
