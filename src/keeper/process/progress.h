/* Notes about a process that runs for long: how much it has printed, and for how long it has been
 * silent. The first comes after the time that the spawn asked for, each later one after twice as
 * long, up to 30 s; none after the end. Subscribers are told, and the latest note waits in the
 * queue of its session (completions.h). */
#ifndef COOP_KEEPER_PROGRESS_H
#define COOP_KEEPER_PROGRESS_H

#include <stdint.h>

#include "base/json/jsonw.h"
#include "base/list.h"

#define COOP_PROGRESS_LONGEST_NS 30000000000ull

struct coop_observer;
struct coop_process;

struct coop_progress {
	struct coop_process *process; /* whose this is */
	struct coop_link in_notes;    /* the note waits to be taken */
	uint64_t asked_ns, interval_ns;
	uint64_t last_output; /* monotonic; 0: none yet */
	/* The latest note. */
	uint64_t bytes[2], total; /* by stream, and in all */
	uint64_t new_bytes, silence_ms;
	int64_t at; /* wall clock */
};

/* How long after a note the next one comes, from how long that took and what was asked for: who
 * asked for longer than the longest gets that. */
static inline uint64_t coop_progress_next(uint64_t interval_ns, uint64_t asked_ns)
{
	if (interval_ns * 2 <= COOP_PROGRESS_LONGEST_NS)
		return interval_ns * 2;
	return asked_ns > COOP_PROGRESS_LONGEST_NS ? asked_ns : COOP_PROGRESS_LONGEST_NS;
}

/* It wants notes. 0 or -ENOMEM. */
int coop_progress_want(struct coop_process *process, int64_t interval_ms);
void coop_progress_free(struct coop_process *process);

/* All of these do nothing for a process without. */
void coop_progress_begin(struct coop_process *process);  /* its program has been executed */
void coop_progress_output(struct coop_process *process); /* it has printed something */
void coop_progress_end(struct coop_process *process);

/* The members of the latest note but for `id` and `at`. */
void coop_progress_write(const struct coop_progress *progress, struct coop_jsonw *w);

/* Its notes come when they are due. */
extern const struct coop_observer coop_progress_observer;

#endif
