/* What the disk is told: the audit's lines, and of processes their start, their end, their release
 * for the database. Queued here, written by the helper thread in batches, so that no process ever
 * waits for a disk; and put into the backlog, where the next keeper finds what this one did not
 * live to write. While the disk takes nothing the queue grows up to its bound; what comes then is
 * lost, counted and told. */
#ifndef COOP_KEEPER_JOURNAL_H
#define COOP_KEEPER_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/later.h"
#include "base/list.h"
#include "records/audit_chain.h"
#include "records/backlog.h"

#define COOP_JOURNAL_MAX 65536u        /* entries that wait */
#define COOP_JOURNAL_BYTES (64u << 20) /* and their texts */

struct coop_keeper;
struct coop_process;

struct coop_journal {
	struct coop_backlog *backlog;  /* NULL in a private keeper; made before the guard */
	struct coop_audit_chain chain; /* where the audit's lines are made */
	struct coop_link ended; /* processes whose ends are to be written, by their in_ended */
	struct coop_later write_ends;
	struct coop_keeper *keeper;
	struct coop_link opening;          /* starts that the audit has, and no row yet; in order */
	struct coop_link waiting, writing; /* struct entry */
	unsigned count;                    /* of all */
	struct coop_buf scratch;
	size_t bytes;
	uint64_t lost;
	uint64_t since_prune;
	uint64_t began;   /* the last batch */
	bool busy;        /* a batch is with the helper thread */
	bool last_word;   /* one more batch, even if nothing waits */
	bool failing;     /* the last batch was not written; it is tried again by the timer */
	char error[160];  /* why */
	uv_timer_t retry; /* the next batch */
};

/* Before keeper and guard part, which share the backlog. NULL without memory. */
struct coop_journal *coop_journal_new(struct coop_backlog *backlog);
/* The loop is there. */
void coop_journal_open(struct coop_keeper *keeper);
void coop_journal_free(struct coop_keeper *keeper);

/* The audit has a line more, to be carried to the disk. */
void coop_journal_line(struct coop_keeper *keeper);
/* The audit has a line that allows it: should it never be executed, and the keeper die, the next
 * one gives the line its end. 0 or -ENOMEM. */
int coop_journal_allowed(struct coop_process *process);
/* The audit has its end. */
void coop_journal_closed(struct coop_process *process);

/* Its program has been executed. */
void coop_journal_started(struct coop_process *process);
/* Its record is final. */
void coop_journal_ended(struct coop_process *process);
/* It was released by its owner: it is not to come back after a restart. */
void coop_journal_released(struct coop_process *process);
/* The process goes: an entry that waits must not point to it. */
void coop_journal_forget(struct coop_process *process);

/* Tries again at once where the disk has refused what it was given. */
void coop_journal_retry(struct coop_keeper *keeper);

/* The keeper leaves: what waits is written now, if the disk takes it. */
void coop_journal_flush(struct coop_keeper *keeper);

#endif
