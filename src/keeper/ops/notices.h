/* Events of processes for whoever subscribed (`follow_events`): an agent hears of its own and of
 * those below it.
 *
 * A subscriber has no queue of its own: a notice is written into its connection's output if there
 * is room, else counted, and the number told when there is room again. What had ended before it
 * came is replayed from the registry, piece by piece. */
#ifndef COOP_KEEPER_NOTICES_H
#define COOP_KEEPER_NOTICES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "interface/err.h"

struct coop_agent;
struct coop_conn_watch;
struct coop_keeper;
struct coop_observer;
struct coop_request;

struct coop_subscriber {
	struct coop_request *request;
	struct coop_link in_keeper, in_conn;
	uint64_t lost;
	uint64_t replayed; /* processes up to this number have been */
	uint64_t came;     /* ends up to this one were before its time */
	bool replaying;
};

/* NULL without memory. */
struct coop_notices *coop_notices_new(void);
/* How many subscribers there are. */
unsigned coop_notices_count(const struct coop_keeper *keeper);

void coop_op_follow_events(struct coop_request *request);

extern const struct coop_observer coop_notices_observer;

/* A spawn met a limit. */
void coop_notices_refused(struct coop_agent *agent, const struct coop_err *err);

/* Replays and gaps go on when there is room in their connection. */
extern const struct coop_conn_watch coop_notices_watch;

#endif
