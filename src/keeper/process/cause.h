/* Why a process ended: the first rule that decided to end it, else a signal that was sent through
 * coop, else what the kernel says. */
#ifndef COOP_KEEPER_CAUSE_H
#define COOP_KEEPER_CAUSE_H

#include <stdint.h>

struct coop_process;

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

const char *coop_cause_name(enum coop_cause cause);
/* The cause of that name; NONE if there is none. */
enum coop_cause coop_cause_parse(const char *name);

/* Records the first rule that ends the process; later ones change nothing. */
void coop_cause_force(struct coop_process *process, enum coop_cause cause,
		      const struct coop_evidence *evidence);

/* Its leader has ended: fills cause and evidence of its end. */
void coop_cause_judge(struct coop_process *process, int wait_status, uint64_t cpu_ns);

#endif
