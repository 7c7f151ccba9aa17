#include "records/row.h"

#include <errno.h>
#include <string.h>

/* Before the texts, each of which ends with a 0. */
struct front {
	uint64_t change;
	int64_t agent, started_at, ended_at;
};

#define TEXTS 5

int coop_row_put(struct coop_backlog *backlog, enum coop_row_change change,
		 const struct coop_store_process *row, struct coop_buf *scratch)
{
	const char *const texts[TEXTS] = {row->id, row->principal, row->agent_path, row->about,
					  row->outcome};
	const struct front front = {change, row->agent, row->started_at, row->ended_at};
	int r = coop_buf_append(scratch, &front, sizeof front);

	for (int i = 0; r == 0 && i < TEXTS; i++) {
		const char *text = texts[i] ? texts[i] : "";
		r = coop_buf_append(scratch, text, strlen(text) + 1);
	}
	if (r == 0)
		r = coop_backlog_put(backlog, COOP_LANE_ROWS, row->n, coop_buf_front(scratch),
				     coop_buf_size(scratch), 0);
	coop_buf_consume(scratch, coop_buf_size(scratch));
	return r;
}

int coop_row_parse(const struct coop_backlog_entry *entry, enum coop_row_change *ret_change,
		   struct coop_store_process *ret)
{
	const char *texts[TEXTS], *at = (const char *)entry->bytes + sizeof(struct front),
				  *end = (const char *)entry->bytes + entry->size;
	struct front front;

	if (entry->size < sizeof front)
		return -EBADMSG;
	memcpy(&front, entry->bytes, sizeof front);
	for (int i = 0; i < TEXTS; i++) {
		texts[i] = at;
		at = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;
		if (!at)
			return -EBADMSG;
		at++;
	}
	if (front.change > COOP_ROW_RELEASED || at != end || entry->number > INT64_MAX)
		return -EBADMSG;
	*ret_change = (enum coop_row_change)front.change;
	*ret = (struct coop_store_process){
		.n = entry->number,
		.id = texts[0],
		.agent = front.agent,
		.principal = texts[1],
		.agent_path = texts[2],
		.started_at = front.started_at,
		.ended_at = front.ended_at,
		.about = texts[3],
		.outcome = *texts[4] ? texts[4] : NULL,
	};
	return 0;
}

int coop_row_write(struct coop_store *store, enum coop_row_change change,
		   const struct coop_store_process *row, struct coop_err *err)
{
	if (change == COOP_ROW_STARTED)
		return coop_store_put_process(store, row, err);
	if (change == COOP_ROW_ENDED)
		return coop_store_end_process(store, row->n, row->ended_at, row->outcome, err);
	return coop_store_release(store, row->n, err);
}

static int write_all(const struct coop_backlog *backlog, uint64_t end, struct coop_store *store,
		     struct coop_err *err)
{
	struct coop_backlog_entry entry;
	struct coop_store_process row;
	enum coop_row_change change;
	uint64_t at = 0;
	int r = 0;

	while (r == 0 && coop_backlog_next(backlog, COOP_LANE_ROWS, &at, end, &entry) > 0) {
		if (coop_row_parse(&entry, &change, &row) == 0)
			r = coop_row_write(store, change, &row, err);
	}
	return r;
}

int coop_row_recover(struct coop_backlog *backlog, struct coop_store *store, struct coop_err *err)
{
	uint64_t end = coop_backlog_end(backlog, COOP_LANE_ROWS);

	if (!coop_backlog_waiting(backlog, COOP_LANE_ROWS))
		return 0;
	int r = coop_store_begin(store, err);
	if (r < 0)
		return r;
	r = write_all(backlog, end, store, err);
	if (r < 0)
		coop_store_rollback(store);
	else
		r = coop_store_commit(store, err);
	if (r == 0)
		coop_backlog_advance(backlog, COOP_LANE_ROWS, end);
	return r;
}
