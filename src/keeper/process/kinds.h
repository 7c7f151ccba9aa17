/* The words of this room, without what is done with them: phases, moments, causes, deadlines. */
#ifndef COOP_KEEPER_KINDS_H
#define COOP_KEEPER_KINDS_H

#include <stdint.h>

#include "base/list.h"

#define COOP_NOTES_MAX 16u /* of a process */

enum coop_phase {
	COOP_PHASE_NEW,      /* being made: in no registry */
	COOP_PHASE_STARTING, /* its program has not been executed */
	COOP_PHASE_RUNNING,
	COOP_PHASE_ENDED,   /* its leader has been reaped; output may still come */
	COOP_PHASE_DRAINED, /* that is over, or was waited for long enough; others may be dying */
	COOP_PHASE_TOLD,    /* whoever waits for the end has been answered */
	COOP_PHASE_RECEIPT, /* output and events have been given up */
	COOP_PHASE_REMOVED, /* out of the registry; whoever reads still may */
	COOP_PHASE_COUNT,
};

enum coop_moment {
	COOP_AT_ADDED,    /* the registry has it */
	COOP_AT_EXECUTED, /* its program runs */
	COOP_AT_ENDED,    /* its leader has been reaped, or it could not be started */
	COOP_AT_DRAINED,  /* its output has ended, or enough was waited for it */
	COOP_AT_FREED,    /* what kept its end from being told may be over */
	COOP_AT_SHED,     /* its output and events are given up */
	COOP_AT_REMOVED,  /* the registry has let go of it */
	COOP_AT_COUNT,
};

enum coop_state {
	COOP_STATE_STARTING,
	COOP_STATE_RUNNING,
	COOP_STATE_STOPPED,
	COOP_STATE_STOPPING,
	COOP_STATE_EXITED,
	COOP_STATE_SIGNALED,
	COOP_STATE_COUNT,
};

enum coop_cause {
	COOP_CAUSE_NONE,
	COOP_CAUSE_SELF_EXIT,
	COOP_CAUSE_SIGNAL,
	COOP_CAUSE_KILLED_BY_REQUEST,
	COOP_CAUSE_TIMED_OUT,
	COOP_CAUSE_LIFETIME,
	COOP_CAUSE_IDLE,
	COOP_CAUSE_OUTPUT_QUOTA,
	COOP_CAUSE_OOM,
	COOP_CAUSE_CPU_TIME,
	COOP_CAUSE_SANDBOX_DENIED,
	COOP_CAUSE_SESSION_END,
	COOP_CAUSE_OWNER_RETIRED,
	COOP_CAUSE_CANCELLED,
	COOP_CAUSE_SHUTDOWN,
	COOP_CAUSE_SPAWN_FAILED,
	COOP_CAUSE_LOST,
	COOP_CAUSE_COUNT,
};

/* Who asked for the end, or which rule did. */
struct coop_evidence {
	const char *request; /* "kill", … or NULL */
	const char *agent;   /* path of who asked; lives as long as the process's own agent */
	int64_t at;          /* wall clock */
	const char *limit;   /* the rule's argument, or NULL */
	int64_t value;
};

struct coop_ending {
	int wait_status;
	enum coop_cause cause;
	int64_t ended_at;
	uint64_t ended; /* monotonic */
	struct coop_evidence evidence;
};

/* Moments at which something is due, in nanoseconds of the monotonic clock. */
enum coop_deadline {
	COOP_DUE_TIMEOUT,
	COOP_DUE_LIFETIME,
	COOP_DUE_IDLE,
	COOP_DUE_GRACE,      /* of a stop: then the tree is killed */
	COOP_DUE_KILL_LIMIT, /* a kill answers at the latest then */
	COOP_DUE_QUIET,      /* no byte for so long after the end: drained */
	COOP_DUE_DRAINED,    /* drained at the latest */
	COOP_DUE_HOLD,       /* a holder that has not moved until then loses its right */
	COOP_DUE_TIDY,  /* what still stands in folders after the end is waited for no longer */
	COOP_DUE_START, /* a start takes long: it may stand still */
	COOP_DUE_RETENTION,
	COOP_DUE_CHUNK,    /* an unfinished character has waited long enough for its rest */
	COOP_DUE_PROGRESS, /* the next note about one that runs */
	COOP_DUE_SHRINK,   /* an enlarged pipe has been quiet */
	COOP_DUE_RETRY,    /* something could not be done for want of memory or descriptors */
	COOP_DUE_COUNT,
};

struct coop_notes {
	char *texts[COOP_NOTES_MAX];
	unsigned count;
};

struct coop_readers {
	struct coop_link all; /* the one used last comes last */
	unsigned count;
};

#endif
