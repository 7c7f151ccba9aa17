#include "records/lost.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io/log.h"
#include "base/json/jsonw.h"
#include "base/json/stored.h"
#include "base/map.h"
#include "base/mem.h"
#include "records/audit.h"
#include "records/backlog.h"
#include "records/store.h"

/* A start without an end, as far as is known. */
struct start {
	struct start *next;
	uint64_t seq; /* of the line that allowed it */
	char *principal, *agent;
	bool ended;
};

struct search {
	struct start *first, **last; /* in the order they were met */
	struct coop_map by_seq;
};

static void clear(struct search *search)
{
	for (struct start *start = search->first, *next; start; start = next) {
		next = start->next;
		free(start->principal);
		free(start->agent);
		free(start);
	}
	coop_map_clear(&search->by_seq);
}

/* 0 or -ENOMEM. */
static int add(struct search *search, uint64_t seq, const char *principal, const char *agent)
{
	if (!seq || coop_map_get(&search->by_seq, seq))
		return 0;
	struct start *start = coop_mem_zalloc(sizeof *start);
	if (!start)
		return -ENOMEM;
	*search->last = start;
	search->last = &start->next;
	start->seq = seq;
	start->principal = principal ? coop_mem_strdup(principal) : NULL;
	start->agent = agent ? coop_mem_strdup(agent) : NULL;
	if ((principal && !start->principal) || (agent && !start->agent))
		return -ENOMEM;
	return coop_map_put(&search->by_seq, seq, start);
}

static int on_row(void *user, const struct coop_store_process *row)
{
	json_t *about = coop_stored_object(row->about);
	const char *id = json_string_value(json_object_get(about, "audit_id"));
	uint64_t seq = id && !strncmp(id, "aud-", 4) ? strtoull(id + 4, NULL, 10) : 0;
	int r = add(user, seq, row->principal, row->agent_path);

	json_decref(about);
	return r;
}

static const char *text_of(const json_t *line, const char *name)
{
	return json_string_value(json_object_get(line, name));
}

static int on_line(void *user, uint64_t seq, const char *bytes, size_t size)
{
	struct search *search = user;
	json_t *line = json_loadb(bytes, size, 0, NULL);
	const char *kind = text_of(line, "kind"), *decision = text_of(line, "decision");
	int r = 0;

	if (kind && !strcmp(kind, "spawn") && decision && !strcmp(decision, "allowed")) {
		r = add(search, seq, text_of(line, "principal"), text_of(line, "agent"));
	} else if (kind && !strcmp(kind, "end")) {
		json_int_t ended = json_integer_value(json_object_get(line, "spawn"));
		struct start *start =
			ended > 0 ? coop_map_get(&search->by_seq, (uint64_t)ended) : NULL;
		if (start)
			start->ended = true;
	}
	json_decref(line);
	return r;
}

/* Writes what the backlog holds, so that there is room for more. */
static int make_room(struct coop_audit *audit, struct coop_backlog *backlog)
{
	uint64_t done = 0;
	int r = coop_audit_carry(audit, backlog, coop_backlog_end(backlog, COOP_LANE_AUDIT), &done);

	coop_backlog_advance(backlog, COOP_LANE_AUDIT, done);
	return r;
}

/* The end of which nothing is known but that there was one. */
static void write_members(const struct start *start, struct coop_jsonw *w)
{
	coop_jsonw_string(w, "kind", "end");
	coop_jsonw_uint(w, "spawn", start->seq);
	coop_jsonw_string(w, "principal", start->principal);
	coop_jsonw_string(w, "agent", start->agent);
	coop_jsonw_begin(w, "exit");
	coop_jsonw_null(w, "code");
	coop_jsonw_null(w, "signal");
	coop_jsonw_null(w, "signal_name");
	coop_jsonw_bool(w, "core_dumped", false);
	coop_jsonw_end(w);
	coop_jsonw_string(w, "end_cause", "lost");
	coop_jsonw_uint(w, "duration_ms", 0);
}

/* 0 or -errno. */
static int write_end(struct coop_audit *audit, struct coop_audit_chain *chain,
		     const struct start *start)
{
	struct coop_buf out = {0};
	struct coop_jsonw w = {.out = &out};
	uint64_t seq;

	write_members(start, &w);
	int r = w.failed || coop_buf_append(&out, "", 1) < 0 ? -ENOMEM : -ENOBUFS;
	for (int tries = 0; r == -ENOBUFS && tries < 2; tries++) {
		if (tries && make_room(audit, chain->backlog) < 0)
			break;
		r = coop_audit_chain_add(chain, COOP_AUDIT_END, coop_clock_wall_ms(),
					 (const char *)coop_buf_front(&out), &seq);
	}
	coop_buf_clear(&out);
	return r;
}

/* From which line on there may be starts that the database has no row of. */
static int scan_from(struct coop_store *store, const struct coop_audit_chain *chain, uint64_t *ret,
		     struct coop_err *err)
{
	char *text = NULL;
	int r = coop_store_get_meta(store, "audit_open", &text, err);

	if (r == 0)
		*ret = text ? strtoull(text, NULL, 10) : chain->last + 1;
	free(text);
	return r;
}

static int find(struct coop_store *store, const struct coop_audit_chain *chain,
		const char *state_dir, struct search *search, struct coop_err *err)
{
	uint64_t from = 0;
	int r = coop_store_each_open(store, on_row, search, err);

	if (r == 0)
		r = scan_from(store, chain, &from, err);
	if (r < 0)
		return r;
	r = coop_audit_each(state_dir, from, on_line, search);
	if (r == -ENOMEM)
		return coop_err_no_memory(err);
	return r < 0 ? coop_err_set(err, COOP_UNAVAILABLE, "the audit cannot be read: %s",
				    strerror(-r))
		     : 0;
}

/* Lines from here on are the next keeper's to look through. */
static int note_seen(struct coop_store *store, const struct coop_audit_chain *chain,
		     struct coop_err *err)
{
	char number[24];

	(void)snprintf(number, sizeof number, "%llu", (unsigned long long)chain->last + 1);
	return coop_store_set_meta(store, "audit_open", number, err);
}

int coop_lost_audit(struct coop_store *store, struct coop_audit *audit,
		    struct coop_audit_chain *chain, const char *state_dir, uint64_t *lost,
		    struct coop_err *err)
{
	struct search search = {.last = &search.first};
	int r = find(store, chain, state_dir, &search, err);

	for (const struct start *start = search.first; r == 0 && start; start = start->next) {
		if (!start->ended && write_end(audit, chain, start) < 0 && (*lost)++ == 0)
			coop_log(COOP_LOG_ERROR, "ends of lost processes cannot be written");
	}
	clear(&search);
	return r < 0 ? r : note_seen(store, chain, err);
}
