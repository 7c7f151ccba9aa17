/* The keeper's own life: whether it is leaving, what its leaving waits for, and whether anybody
 * still needs it. main/ decides; the other rooms tell it what has changed. */
#ifndef COOP_KEEPER_LIFE_H
#define COOP_KEEPER_LIFE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/later.h"

struct coop_keeper;
struct coop_request;

struct coop_life {
	bool stopping;             /* asked to leave: nothing is started any more */
	bool finished;             /* nothing is left to do but sending the last answers */
	unsigned disk_jobs;        /* that the helper thread has not finished */
	struct coop_laters laters; /* what is due at the end of the loop's turn */
	struct coop_later look, reap;
	void (*shutdown)(struct coop_keeper *keeper, uint64_t grace_ms,
			 struct coop_request *request);
};

bool coop_life_stopping(const struct coop_keeper *keeper);
bool coop_life_finished(const struct coop_keeper *keeper);

/* A process, session or connection came or went: is there still something to keep? Looked at when
 * the loop's turn is over. */
void coop_life_look(struct coop_keeper *keeper);

/* A spawn has been answered: a report of a child may have waited for that. Looked at when the turn
 * is over. */
void coop_life_reap(struct coop_keeper *keeper);

/* Orderly stop: refuses spawns, stops all with grace, then ends the loop. `request` (or NULL) is
 * answered just before. */
void coop_life_end(struct coop_keeper *keeper, uint64_t grace_ms, struct coop_request *request);

/* Work is given to the helper thread, and is done: the keeper's end waits for it. */
void coop_life_disk_begin(struct coop_keeper *keeper);
void coop_life_disk_end(struct coop_keeper *keeper);

#endif
