#include "keeper/lost.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/jsonw.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/stored.h"
#include "keeper/keeper.h"
#include "keeper/list.h"
#include "keeper/process.h"
#include "keeper/record.h"
#include "records/audit.h"
#include "records/store.h"

/* A start without an end, as far as is known. */
struct start {
	struct coop_link link;
	uint64_t seq; /* of the line that allowed it */
	char *principal, *agent;
};

struct search {
	struct coop_link found; /* struct start, in the order they were met */
	struct coop_map by_seq;
};

static void drop(struct search *search, struct start *start)
{
	(void)coop_map_remove(&search->by_seq, start->seq);
	coop_list_remove(&start->link);
	free(start->principal);
	free(start->agent);
	free(start);
}

/* 0 or -ENOMEM. */
static int add(struct search *search, uint64_t seq, const char *principal, const char *agent)
{
	if (!seq || coop_map_get(&search->by_seq, seq))
		return 0;
	struct start *start = coop_mem_zalloc(sizeof *start);
	if (!start)
		return -ENOMEM;
	coop_list_add(&search->found, &start->link);
	start->seq = seq;
	start->principal = principal ? coop_mem_strdup(principal) : NULL;
	start->agent = agent ? coop_mem_strdup(agent) : NULL;
	if ((principal && !start->principal) || (agent && !start->agent) ||
	    coop_map_put(&search->by_seq, seq, start) < 0) {
		drop(search, start);
		return -ENOMEM;
	}
	return 0;
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
			drop(search, start);
	}
	json_decref(line);
	return r;
}

/* Writes what the backlog holds, so that there is room for more. */
static int make_room(struct coop_keeper *keeper)
{
	struct coop_backlog *backlog = keeper->journal.backlog;
	uint64_t done = 0;
	int r = coop_audit_carry(keeper->audit, backlog, coop_backlog_end(backlog, COOP_LANE_AUDIT),
				 &done);

	coop_backlog_advance(backlog, COOP_LANE_AUDIT, done);
	return r;
}

/* The end of which nothing is known but that there was one. 0 or -errno. */
static int write_end(struct coop_keeper *keeper, const struct start *start)
{
	struct coop_buf out = {0};
	struct coop_jsonw w = {.out = &out};
	int64_t now = coop_clock_wall_ms();
	uint64_t seq;

	coop_jsonw_string(&w, "kind", "end");
	coop_jsonw_uint(&w, "spawn", start->seq);
	coop_jsonw_string(&w, "principal", start->principal);
	coop_jsonw_string(&w, "agent", start->agent);
	coop_record_write_exit(0, COOP_CAUSE_LOST, &w);
	coop_jsonw_string(&w, "end_cause", coop_cause_name(COOP_CAUSE_LOST));
	coop_jsonw_uint(&w, "duration_ms", 0);
	int r = w.failed || coop_buf_append(&out, "", 1) < 0 ? -ENOMEM : -ENOBUFS;
	for (int tries = 0; r == -ENOBUFS && tries < 2; tries++) {
		if (tries && make_room(keeper) < 0)
			break;
		r = coop_audit_chain_add(&keeper->journal.chain, COOP_AUDIT_END, now,
					 (const char *)coop_buf_front(&out), &seq);
	}
	coop_buf_clear(&out);
	return r;
}

/* From which line on there may be starts that the database has no row of. */
static int scan_from(struct coop_keeper *keeper, uint64_t *ret, struct coop_err *err)
{
	char *text = NULL;
	int r = coop_store_get_meta(keeper->store, "audit_open", &text, err);

	if (r == 0)
		*ret = text ? strtoull(text, NULL, 10) : keeper->journal.chain.last + 1;
	free(text);
	return r;
}

static int find(struct coop_keeper *keeper, struct search *search, struct coop_err *err)
{
	uint64_t from = 0;
	int r = coop_store_each_open(keeper->store, on_row, search, err);

	if (r == 0)
		r = scan_from(keeper, &from, err);
	if (r < 0)
		return r;
	r = coop_audit_each(keeper->state_dir, from, on_line, search);
	if (r == -ENOMEM)
		return coop_err_no_memory(err);
	return r < 0 ? coop_err_set(err, COOP_UNAVAILABLE, "the audit cannot be read: %s",
				    strerror(-r))
		     : 0;
}

int coop_lost_audit(struct coop_keeper *keeper, struct coop_err *err)
{
	struct search search = {0};

	coop_list_init(&search.found);
	int r = find(keeper, &search, err);
	while (!coop_list_empty(&search.found)) {
		struct start *start = COOP_LIST_ITEM(search.found.next, struct start, link);
		if (r == 0 && write_end(keeper, start) < 0 && keeper->audit_lost++ == 0)
			coop_log(COOP_LOG_ERROR, "ends of lost processes cannot be written");
		drop(&search, start);
	}
	coop_map_clear(&search.by_seq);
	return r;
}
