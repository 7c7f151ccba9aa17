#include "keeper/store/journal.h"
#include "keeper/core/books.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io/log.h"
#include "base/mem.h"
#include "interface/err.h"
#include "keeper/conf/conf.h"
#include "keeper/core/keeper.h"
#include "keeper/core/life.h"
#include "keeper/host/views.h"
#include "keeper/link/job.h"
#include "keeper/owner/agent.h"
#include "keeper/process/process.h"
#include "keeper/store/archive.h"
#include "records/audit.h"
#include "records/row.h"
#include "records/store.h"
#include "sandbox/layout/ghosts.h"

#define MS 1000000u
#define RETRY_MS 1000
#define GATHER_MS 20
#define PRUNE_EVERY 1024 /* changes; more often where little is to be remembered */
#define BATCH_MAX 4096u

struct entry {
	struct coop_link link;
	enum coop_row_change change;
	/* Opening, or started and not yet with the helper thread; else NULL. */
	struct coop_process *process;
	uint64_t audit_seq; /* of the line that allowed it, while it is opening */
	uint64_t begin;     /* in the backlog; what belongs to it begins there, or later */
	uint64_t n;
	int64_t agent, started_at, ended_at;
	char *id, *principal, *path, *about, *outcome;
	size_t bytes;
};

struct batch {
	struct coop_job job;
	/* The audit's lines up to `lines_end`, and how that went; of rows all before `rows_end`. */
	uint64_t lines_end, lines_done, rows_end;
	int lines_result;
	/* the audit has the end, or the database the row, of every start before */
	uint64_t open_from;
	uint64_t audit_bytes;
	unsigned audit_files;
	bool ghosts; /* the list of placeholders has changed */
	bool prune;
	uint64_t keep; /* rows; the configuration is the loop's */
};

static void free_entry(struct coop_journal *journal, struct entry *entry)
{
	char *texts[] = {entry->id, entry->principal, entry->path, entry->about, entry->outcome};

	if (entry->process)
		entry->process->books.journal = NULL;
	coop_list_remove(&entry->link);
	journal->count--;
	journal->bytes -= entry->bytes;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		free(texts[i]);
	free(entry);
}

/* Made before keeper and guard part, as they share the backlog: without the loop, which is the
 * keeper's alone. */
struct coop_journal *coop_journal_new(struct coop_backlog *backlog)
{
	struct coop_journal *journal = coop_mem_zalloc(sizeof *journal);

	if (!journal)
		return NULL;
	journal->backlog = backlog;
	coop_list_init(&journal->ended);
	coop_list_init(&journal->opening);
	coop_list_init(&journal->waiting);
	coop_list_init(&journal->writing);
	journal->since_prune = PRUNE_EVERY; /* the limit may have changed since the last keeper */
	return journal;
}

void coop_journal_open(struct coop_keeper *keeper)
{
	struct coop_journal *journal = coop_journal_of(keeper);

	(void)uv_timer_init(coop_loop_of(keeper), &journal->retry);
	journal->retry.data = keeper;
	journal->keeper = keeper;
}

void coop_journal_free(struct coop_keeper *keeper)
{
	struct coop_journal *journal = coop_journal_of(keeper);

	unsigned long long lost = journal->lost;

	while (!coop_list_empty(&journal->opening))
		free_entry(journal, COOP_LIST_ITEM(journal->opening.next, struct entry, link));
	lost += journal->count;
	if (journal->count)
		coop_log(COOP_LOG_ERROR, "records are lost: the keeper leaves lost=%llu", lost);
	while (!coop_list_empty(&journal->waiting))
		free_entry(journal, COOP_LIST_ITEM(journal->waiting.next, struct entry, link));
	coop_audit_chain_clear(&journal->chain);
	coop_buf_clear(&journal->scratch);
}

/* Said once: a full queue loses thousands, and `info` has their number. */
static void lose(struct coop_journal *journal)
{
	if (journal->lost++ == 0)
		coop_log(COOP_LOG_ERROR, "records are lost: the database does not take them");
}

/* Adds the bytes of a text that may be NULL. */
static void weigh(struct coop_journal *journal, struct entry *entry, const char *text)
{
	size_t size = text ? strlen(text) + 1 : 0;

	entry->bytes += size;
	journal->bytes += size;
}

static struct coop_store_process row_of(const struct entry *entry)
{
	return (struct coop_store_process){
		.n = entry->n,
		.id = entry->id,
		.agent = entry->agent,
		.principal = entry->principal,
		.agent_path = entry->path,
		.started_at = entry->started_at,
		.ended_at = entry->ended_at,
		.about = entry->about,
		.outcome = entry->outcome,
	};
}

/* For the next keeper, should this one not live to write it. Without room there it is as safe as
 * the keeper is. */
static void note(struct coop_journal *journal, enum coop_row_change change,
		 const struct entry *entry)
{
	struct coop_store_process row = row_of(entry);

	(void)coop_row_put(journal->backlog, change, &row, &journal->scratch);
}

/* Bounded by number and by bytes: a disk that stands still must not take the memory of
 * everybody. */
static struct entry *add(struct coop_process *process, struct coop_link *list,
			 enum coop_row_change change)
{
	struct coop_journal *journal = coop_journal_of(process->keeper);
	bool room = journal->count < COOP_JOURNAL_MAX && journal->bytes < COOP_JOURNAL_BYTES;
	struct entry *entry = room ? coop_mem_zalloc(sizeof *entry) : NULL;

	if (!entry) {
		lose(journal);
		return NULL;
	}
	entry->change = change;
	entry->n = process->n;
	entry->begin = coop_backlog_end(journal->backlog, COOP_LANE_ROWS);
	entry->bytes = sizeof *entry;
	journal->bytes += entry->bytes;
	journal->count++;
	coop_list_add(list, &entry->link);
	return entry;
}

/* ---- helper thread ---- */

/* In the transaction of the rows, so that what the database says of the audit is as old as what it
 * says of processes. */
static int write_anchor(struct coop_keeper *keeper, uint64_t open_from, struct coop_err *err)
{
	char text[COOP_AUDIT_ANCHOR_TEXT], number[24];
	struct coop_audit_anchor anchor;

	coop_audit_anchor(coop_books_of(keeper)->audit, &anchor);
	coop_audit_anchor_format(&anchor, text);
	(void)snprintf(number, sizeof number, "%llu", (unsigned long long)open_from);
	int r = coop_store_set_meta(coop_books_of(keeper)->store, "audit", text, err);
	return r < 0 ? r
		     : coop_store_set_meta(coop_books_of(keeper)->store, "audit_open", number, err);
}

static int write_all(struct coop_keeper *keeper, const struct batch *batch, struct coop_err *err)
{
	struct coop_store *store = coop_books_of(keeper)->store;
	int r = 0;

	/* The list is the helper thread's while the batch is with it. */
	COOP_LIST_EACH(&coop_journal_of(keeper)->writing, link)
	{
		const struct entry *entry = COOP_LIST_ITEM(link, struct entry, link);
		struct coop_store_process row = row_of(entry);
		if (r == 0)
			r = coop_row_write(store, entry->change, &row, err);
	}
	if (r == 0 && coop_books_of(keeper)->audit)
		r = write_anchor(keeper, batch->open_from, err);
	if (r == 0 && batch->prune)
		r = coop_store_prune(store, batch->keep, err);
	return r;
}

static void run(struct coop_job *job)
{
	struct coop_keeper *keeper = job->keeper;
	struct coop_store *store = coop_books_of(keeper)->store;
	struct batch *batch = (struct batch *)job;

	if (batch->ghosts)
		coop_ghosts_save(coop_place_of(keeper)->state_dir,
				 coop_backlog_apart(coop_journal_of(keeper)->backlog));
	if (coop_books_of(keeper)->audit) {
		coop_audit_limit(coop_books_of(keeper)->audit, batch->audit_bytes,
				 batch->audit_files);
		batch->lines_result = coop_audit_carry(coop_books_of(keeper)->audit,
						       coop_journal_of(keeper)->backlog,
						       batch->lines_end, &batch->lines_done);
	}
	job->result = coop_store_begin(store, &job->err);
	if (job->result < 0)
		return;
	job->result = write_all(keeper, batch, &job->err);
	if (job->result < 0)
		coop_store_rollback(store);
	else
		job->result = coop_store_commit(store, &job->err);
}

/* ---- loop's thread ---- */

static void write_next(struct coop_keeper *keeper);
static void soon(struct coop_keeper *keeper);

/* Lines of the audit have no entries: they lie in the backlog alone. */
static bool has_work(const struct coop_journal *journal)
{
	return !coop_list_empty(&journal->waiting) ||
	       (journal->chain.backlog && coop_backlog_waiting(journal->backlog, COOP_LANE_AUDIT));
}

static void on_retry(uv_timer_t *timer)
{
	struct coop_keeper *keeper = timer->data;

	write_next(keeper);
}

/* What was not written waits in front of what came meanwhile. */
static void put_back(struct coop_journal *journal)
{
	while (!coop_list_empty(&journal->writing)) {
		struct coop_link *last = journal->writing.prev;
		coop_list_remove(last);
		coop_list_add(journal->waiting.next, last);
	}
}

/* The database did not take the batch. */
static void rows_failed(struct coop_keeper *keeper, const struct coop_err *err)
{
	struct coop_journal *journal = coop_journal_of(keeper);

	if (!*journal->error)
		coop_log(COOP_LOG_ERROR, "the database cannot be written to error=\"%s\"",
			 err->message);
	(void)snprintf(journal->error, sizeof journal->error, "%.150s", err->message);
	put_back(journal);
}

/* Only now may the backlog forget them: had the keeper died in between, the next one would have
 * done them again, which changes nothing. */
static void rows_written(struct coop_keeper *keeper, const struct batch *batch)
{
	struct coop_journal *journal = coop_journal_of(keeper);

	if (batch->prune)
		journal->since_prune = 0;
	if (*journal->error)
		coop_log(COOP_LOG_INFO, "the database is written to again lost=%llu",
			 (unsigned long long)journal->lost);
	*journal->error = 0;
	while (!coop_list_empty(&journal->writing))
		free_entry(journal, COOP_LIST_ITEM(journal->writing.next, struct entry, link));
	coop_backlog_advance(journal->backlog, COOP_LANE_ROWS, batch->rows_end);
}

/* What the files took is gone from the backlog, whether or not it was all. */
static void lines_written(struct coop_keeper *keeper, const struct batch *batch)
{
	int r = batch->lines_result;

	coop_backlog_advance(coop_journal_of(keeper)->backlog, COOP_LANE_AUDIT, batch->lines_done);
	if (r < 0 && !*coop_books_of(keeper)->audit_error)
		coop_log(COOP_LOG_ERROR, "the audit cannot be written error=%s",
			 coop_err_errno_name(-r));
	(void)snprintf(coop_books_of(keeper)->audit_error,
		       sizeof coop_books_of(keeper)->audit_error, "%s", r < 0 ? strerror(-r) : "");
}

static void done(struct coop_job *job)
{
	struct coop_keeper *keeper = job->keeper;
	struct coop_journal *journal = coop_journal_of(keeper);
	struct batch *batch = (struct batch *)job;

	journal->busy = false;
	journal->failing = job->result < 0 || batch->lines_result < 0;
	lines_written(keeper, batch);
	if (job->result < 0)
		rows_failed(keeper, &job->err);
	else
		rows_written(keeper, batch);
	free(batch);
	/* One that leaves does not try again. */
	if (coop_life_finished(keeper) && journal->failing)
		return;
	if (coop_life_finished(keeper)) {
		write_next(keeper);
	} else if (journal->failing) {
		uv_update_time(coop_loop_of(keeper));
		(void)uv_timer_start(&journal->retry, on_retry, RETRY_MS, 0);
	} else if (has_work(journal)) {
		soon(keeper);
	}
}

/* Every start that the audit has, from the first of those that are still opening. */
static uint64_t open_from(const struct coop_journal *journal)
{
	if (coop_list_empty(&journal->opening))
		return journal->chain.last + 1;
	return COOP_LIST_ITEM(journal->opening.next, struct entry, link)->audit_seq;
}

static void write_next(struct coop_keeper *keeper)
{
	struct coop_journal *journal = coop_journal_of(keeper);
	unsigned taken = 0;

	if (journal->busy || (!has_work(journal) && !journal->last_word))
		return;
	journal->last_word = false;
	struct batch *batch = coop_mem_zalloc(sizeof *batch);
	if (!batch) {
		(void)uv_timer_start(&journal->retry, on_retry, RETRY_MS, 0);
		return;
	}
	(void)uv_timer_stop(&journal->retry);
	while (!coop_list_empty(&journal->waiting) && taken++ < BATCH_MAX) {
		struct entry *entry = COOP_LIST_ITEM(journal->waiting.next, struct entry, link);
		coop_list_remove(&entry->link);
		coop_list_add(&journal->writing, &entry->link);
		if (entry->process)
			entry->process->books.journal = NULL;
		entry->process = NULL;
	}
	/* Those that stay have nothing in the backlog before the first one's beginning. */
	batch->rows_end =
		coop_list_empty(&journal->waiting)
			? coop_backlog_end(journal->backlog, COOP_LANE_ROWS)
			: COOP_LIST_ITEM(journal->waiting.next, struct entry, link)->begin;
	batch->lines_end = coop_backlog_end(journal->backlog, COOP_LANE_AUDIT);
	batch->open_from = open_from(journal);
	batch->ghosts =
		coop_views_of(keeper)->ghosts && coop_ghosts_changed(coop_views_of(keeper)->ghosts);
	batch->audit_bytes = (uint64_t)coop_conf_of(keeper)->settings.audit_max_bytes;
	batch->audit_files = (unsigned)coop_conf_of(keeper)->settings.audit_files;
	journal->since_prune += taken;
	batch->keep = (uint64_t)coop_conf_of(keeper)->settings.max_history;
	uint64_t often = 1 + batch->keep / 16;
	batch->prune = journal->since_prune >= (often < PRUNE_EVERY ? often : PRUNE_EVERY);
	batch->job.run = run;
	batch->job.done = done;
	journal->busy = true;
	journal->began = coop_clock_now();
	coop_job_begin(keeper, &batch->job);
}

static void later(struct coop_keeper *keeper, uint64_t ms)
{
	struct coop_journal *journal = coop_journal_of(keeper);

	if (uv_is_active((const uv_handle_t *)&journal->retry))
		return;
	uv_update_time(coop_loop_of(keeper));
	(void)uv_timer_start(&journal->retry, on_retry, ms, 0);
}

/* One that comes alone is written at once. Of many, each batch waits a little for others: a
 * transaction costs as much for one as for hundreds. While the disk fails the timer tries alone. */
static void soon(struct coop_keeper *keeper)
{
	struct coop_journal *journal = coop_journal_of(keeper);

	if (journal->failing || journal->busy)
		return;
	uint64_t age = (coop_clock_now() - journal->began) / MS;
	if (age >= GATHER_MS)
		write_next(keeper);
	else
		later(keeper, GATHER_MS - age);
}

void coop_journal_line(struct coop_keeper *keeper)
{
	soon(keeper);
}

/* A start was refused as the disk had refused the last lines: it is tried at once, and not only
 * every second. */
void coop_journal_retry(struct coop_keeper *keeper)
{
	if (coop_journal_of(keeper)->failing)
		write_next(keeper);
}

int coop_journal_allowed(struct coop_process *process)
{
	struct coop_journal *journal = coop_journal_of(process->keeper);
	struct entry *entry = add(process, &journal->opening, COOP_ROW_STARTED);

	if (!entry)
		return -ENOMEM;
	entry->audit_seq = process->books.audit_seq;
	entry->process = process;
	process->books.journal = entry;
	/* Its row, or its end, is about to come, and they are written together. */
	if (!journal->failing && !journal->busy)
		later(process->keeper, GATHER_MS);
	return 0;
}

/* The start has a row, or its end stands in the audit: nobody has to look for it any more. */
void coop_journal_closed(struct coop_process *process)
{
	struct entry *entry = process->books.journal;

	if (entry && entry->audit_seq)
		free_entry(coop_journal_of(process->keeper), entry);
}

void coop_journal_started(struct coop_process *process)
{
	struct coop_keeper *keeper = process->keeper;
	struct coop_journal *journal = coop_journal_of(keeper);
	struct entry *entry = coop_books_of(keeper)->recording
				      ? add(process, &journal->waiting, COOP_ROW_STARTED)
				      : NULL;

	/* Without a row it stays one that only the audit knows. */
	if (!entry)
		return;
	entry->agent = process->agent->id;
	entry->started_at = process->times.started_at;
	entry->id = coop_mem_strdup(process->id);
	entry->principal = coop_mem_strdup(process->agent->principal->name);
	entry->path = coop_mem_strdup(process->agent->path);
	entry->about = coop_archive_about(process);
	if (!entry->id || !entry->principal || !entry->path || !entry->about) {
		free_entry(journal, entry);
		lose(journal);
		return;
	}
	weigh(journal, entry, entry->about);
	coop_journal_closed(process);
	entry->process = process;
	process->books.journal = entry;
	note(journal, COOP_ROW_STARTED, entry);
	soon(keeper);
}

void coop_journal_ended(struct coop_process *process)
{
	struct coop_keeper *keeper = process->keeper;
	struct coop_journal *journal = coop_journal_of(keeper);
	/* Short commands end while their start still waits: one row is written then, once. */
	struct entry *entry = process->books.journal;

	if (!coop_books_of(keeper)->recording)
		return;
	char *outcome = coop_archive_outcome(process);
	if (!outcome) {
		lose(journal);
		return;
	}
	if (entry && entry->audit_seq)
		entry = NULL;
	if (!entry && !(entry = add(process, &journal->waiting, COOP_ROW_ENDED))) {
		free(outcome);
		return;
	}
	entry->outcome = outcome;
	entry->ended_at = process->end.ended_at;
	weigh(journal, entry, outcome);
	const struct entry end = {.n = entry->n, .ended_at = entry->ended_at, .outcome = outcome};
	note(journal, COOP_ROW_ENDED, &end);
	soon(keeper);
}

void coop_journal_released(struct coop_process *process)
{
	struct coop_journal *journal = coop_journal_of(process->keeper);
	struct entry *entry = coop_books_of(process->keeper)->recording
				      ? add(process, &journal->waiting, COOP_ROW_RELEASED)
				      : NULL;

	if (!entry)
		return;
	note(journal, COOP_ROW_RELEASED, entry);
	soon(process->keeper);
}

void coop_journal_forget(struct coop_process *process)
{
	struct entry *entry = process->books.journal;

	if (entry && entry->audit_seq)
		free_entry(coop_journal_of(process->keeper), entry);
	else if (entry)
		entry->process = NULL;
	process->books.journal = NULL;
}

void coop_journal_flush(struct coop_keeper *keeper)
{
	if (!coop_books_of(keeper)->store)
		return;
	/* The audit's end is noted also where nothing else is left to write. */
	coop_journal_of(keeper)->last_word = coop_books_of(keeper)->audit != NULL;
	write_next(keeper);
}
