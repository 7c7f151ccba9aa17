#include "keeper/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "keeper/archive.h"
#include "keeper/job.h"
#include "keeper/keeper.h"
#include "keeper/process.h"
#include "records/audit.h"
#include "records/store.h"

#define MS 1000000u
#define RETRY_MS 1000
#define GATHER_MS 20
#define PRUNE_EVERY 1024 /* changes; more often where little is to be remembered */
#define BATCH_MAX 4096u

enum kind { STARTED, ENDED, RELEASED };

struct entry {
	struct coop_link link;
	enum kind kind;
	struct coop_process *process; /* STARTED and not yet with the helper thread, or NULL */
	uint64_t n;
	int64_t agent, started_at, ended_at;
	char *id, *principal, *path, *about, *outcome;
	size_t bytes;
};

struct batch {
	struct coop_job job;
	char anchor[COOP_AUDIT_ANCHOR_TEXT]; /* "" without audit */
	bool prune;
	uint64_t keep; /* rows; the configuration is the loop's */
};

static void free_entry(struct coop_journal *journal, struct entry *entry)
{
	char *texts[] = {entry->id, entry->principal, entry->path, entry->about, entry->outcome};

	if (entry->process)
		entry->process->journal = NULL;
	coop_list_remove(&entry->link);
	journal->count--;
	journal->bytes -= entry->bytes;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		free(texts[i]);
	free(entry);
}

void coop_journal_init(struct coop_keeper *keeper)
{
	struct coop_journal *journal = &keeper->journal;

	coop_list_init(&journal->waiting);
	coop_list_init(&journal->writing);
	(void)uv_timer_init(&keeper->loop, &journal->retry);
	journal->retry.data = keeper;
	journal->since_prune = PRUNE_EVERY; /* the limit may have changed since the last keeper */
}

void coop_journal_free(struct coop_keeper *keeper)
{
	struct coop_journal *journal = &keeper->journal;

	unsigned long long lost = journal->lost;

	lost += journal->count;
	if (journal->count)
		coop_log(COOP_LOG_ERROR, "records are lost: the keeper leaves lost=%llu", lost);
	while (!coop_list_empty(&journal->waiting))
		free_entry(journal, COOP_LIST_ITEM(journal->waiting.next, struct entry, link));
}

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

static struct entry *add(struct coop_process *process, enum kind kind)
{
	struct coop_journal *journal = &process->keeper->journal;
	bool room = journal->count < COOP_JOURNAL_MAX && journal->bytes < COOP_JOURNAL_BYTES;
	struct entry *entry = room ? coop_mem_zalloc(sizeof *entry) : NULL;

	if (!entry) {
		lose(journal);
		return NULL;
	}
	entry->kind = kind;
	entry->n = process->n;
	entry->bytes = sizeof *entry;
	journal->bytes += entry->bytes;
	journal->count++;
	coop_list_add(&journal->waiting, &entry->link);
	return entry;
}

/* ---- helper thread ---- */

static int write_entry(struct coop_store *store, const struct entry *entry, struct coop_err *err)
{
	struct coop_store_process row = {
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

	if (entry->kind == STARTED)
		return coop_store_put_process(store, &row, err);
	if (entry->kind == ENDED)
		return coop_store_end_process(store, entry->n, entry->ended_at, entry->outcome,
					      err);
	return coop_store_release(store, entry->n, err);
}

static int write_all(struct coop_keeper *keeper, const struct batch *batch, struct coop_err *err)
{
	struct coop_store *store = keeper->store;
	int r = 0;

	/* The list is the helper thread's while the batch is with it. */
	COOP_LIST_EACH(&keeper->journal.writing, link)
	{
		if (r == 0)
			r = write_entry(store, COOP_LIST_ITEM(link, struct entry, link), err);
	}
	if (r == 0 && *batch->anchor)
		r = coop_store_set_meta(store, "audit", batch->anchor, err);
	if (r == 0 && batch->prune)
		r = coop_store_prune(store, batch->keep, err);
	return r;
}

static void run(struct coop_job *job)
{
	struct coop_keeper *keeper = job->keeper;
	struct coop_store *store = keeper->store;

	job->result = coop_store_begin(store, &job->err);
	if (job->result < 0)
		return;
	job->result = write_all(keeper, (const struct batch *)job, &job->err);
	if (job->result < 0)
		coop_store_rollback(store);
	else
		job->result = coop_store_commit(store, &job->err);
}

/* ---- loop's thread ---- */

static void write_next(struct coop_keeper *keeper);
static void soon(struct coop_keeper *keeper);

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

static void failed(struct coop_keeper *keeper, const struct coop_err *err)
{
	struct coop_journal *journal = &keeper->journal;

	if (!journal->failing)
		coop_log(COOP_LOG_ERROR, "the database cannot be written to error=\"%s\"",
			 err->message);
	journal->failing = true;
	(void)snprintf(journal->error, sizeof journal->error, "%.150s", err->message);
	put_back(journal);
	/* One that leaves does not try again. */
	if (keeper->finished)
		return;
	uv_update_time(&keeper->loop);
	(void)uv_timer_start(&journal->retry, on_retry, RETRY_MS, 0);
}

static void done(struct coop_job *job)
{
	struct coop_keeper *keeper = job->keeper;
	struct coop_journal *journal = &keeper->journal;
	struct batch *batch = (struct batch *)job;

	journal->busy = false;
	if (job->result < 0) {
		failed(keeper, &job->err);
		free(batch);
		return;
	}
	if (batch->prune)
		journal->since_prune = 0;
	free(batch);
	if (journal->failing)
		coop_log(COOP_LOG_INFO, "the database is written to again lost=%llu",
			 (unsigned long long)journal->lost);
	journal->failing = false;
	*journal->error = 0;
	while (!coop_list_empty(&journal->writing))
		free_entry(journal, COOP_LIST_ITEM(journal->writing.next, struct entry, link));
	if (keeper->finished)
		write_next(keeper);
	else if (!coop_list_empty(&journal->waiting))
		soon(keeper);
}

static void note_anchor(struct coop_keeper *keeper, struct batch *batch)
{
	struct coop_audit_anchor anchor;

	if (!keeper->audit)
		return;
	coop_audit_anchor(keeper->audit, &anchor);
	coop_audit_anchor_format(&anchor, batch->anchor);
}

static void write_next(struct coop_keeper *keeper)
{
	struct coop_journal *journal = &keeper->journal;
	unsigned taken = 0;

	if (journal->busy || (coop_list_empty(&journal->waiting) && !journal->last_word))
		return;
	journal->last_word = false;
	struct batch *batch = coop_mem_zalloc(sizeof *batch);
	if (!batch) {
		(void)uv_timer_start(&journal->retry, on_retry, RETRY_MS, 0);
		return;
	}
	(void)uv_timer_stop(&journal->retry);
	note_anchor(keeper, batch);
	while (!coop_list_empty(&journal->waiting) && taken++ < BATCH_MAX) {
		struct entry *entry = COOP_LIST_ITEM(journal->waiting.next, struct entry, link);
		coop_list_remove(&entry->link);
		coop_list_add(&journal->writing, &entry->link);
		if (entry->process)
			entry->process->journal = NULL;
		entry->process = NULL;
	}
	journal->since_prune += taken;
	batch->keep = (uint64_t)keeper->conf.settings.max_history;
	uint64_t often = 1 + batch->keep / 16;
	batch->prune = journal->since_prune >= (often < PRUNE_EVERY ? often : PRUNE_EVERY);
	batch->job.run = run;
	batch->job.done = done;
	journal->busy = true;
	journal->began = coop_clock_now();
	coop_job_begin(keeper, &batch->job);
}

/* One that comes alone is written at once. Of many, each batch waits a little for others: a transaction costs as much for one as
 * for hundreds. While the disk fails the timer tries alone. */
static void soon(struct coop_keeper *keeper)
{
	struct coop_journal *journal = &keeper->journal;

	if (journal->failing || journal->busy || uv_is_active((const uv_handle_t *)&journal->retry))
		return;
	uint64_t age = (coop_clock_now() - journal->began) / MS;
	if (age >= GATHER_MS) {
		write_next(keeper);
		return;
	}
	uv_update_time(&keeper->loop);
	(void)uv_timer_start(&journal->retry, on_retry, GATHER_MS - age, 0);
}

void coop_journal_started(struct coop_process *process)
{
	struct coop_keeper *keeper = process->keeper;
	struct entry *entry = keeper->recording ? add(process, STARTED) : NULL;

	if (!entry)
		return;
	entry->agent = process->agent->id;
	entry->started_at = process->started_at;
	entry->id = coop_mem_strdup(process->id);
	entry->principal = coop_mem_strdup(process->agent->principal->name);
	entry->path = coop_mem_strdup(process->agent->path);
	entry->about = coop_archive_about(process);
	if (!entry->id || !entry->principal || !entry->path || !entry->about) {
		free_entry(&keeper->journal, entry);
		lose(&keeper->journal);
		return;
	}
	weigh(&keeper->journal, entry, entry->about);
	entry->process = process;
	process->journal = entry;
	soon(keeper);
}

void coop_journal_ended(struct coop_process *process)
{
	struct coop_keeper *keeper = process->keeper;
	struct coop_journal *journal = &keeper->journal;
	/* Short commands end while their start still waits: one row is written then, once. */
	struct entry *entry = process->journal;

	if (!keeper->recording)
		return;
	char *outcome = coop_archive_outcome(process);
	if (!outcome) {
		lose(journal);
		return;
	}
	if (!entry && !(entry = add(process, ENDED))) {
		free(outcome);
		return;
	}
	entry->outcome = outcome;
	entry->ended_at = process->end.ended_at;
	weigh(journal, entry, outcome);
	soon(keeper);
}

void coop_journal_released(struct coop_process *process)
{
	if (process->keeper->recording && add(process, RELEASED))
		soon(process->keeper);
}

void coop_journal_forget(struct coop_process *process)
{
	struct entry *entry = process->journal;

	if (entry)
		entry->process = NULL;
	process->journal = NULL;
}

void coop_journal_flush(struct coop_keeper *keeper)
{
	if (!keeper->store)
		return;
	/* The audit's end is noted also where nothing else is left to write. */
	keeper->journal.last_word = keeper->audit != NULL;
	write_next(keeper);
}
