/* One process that the keeper owns: what was asked, what it is doing, how it ended.
 *
 * Life: made by a spawn (state starting), added to the registry, running once its program has been
 * executed; ended when the kernel reports the leader's death; `told` when its output is drained as
 * well, which answers whoever waits; shed to a receipt after its retention; freed when the registry
 * and every reader in progress have let go of it. */
#ifndef COOP_KEEPER_PROCESS_H
#define COOP_KEEPER_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <uv.h>

#include "base/list.h"
#include "keeper/core/labels.h"
#include "keeper/output/output.h"
#include "keeper/process/kinds.h"

struct coop_agent;
struct coop_confine;
struct coop_keeper;
struct coop_kill;
struct coop_progress;
struct coop_request;
struct coop_session;
struct coop_spawn;
struct coop_wire;

enum coop_term { COOP_LEASE_EPHEMERAL, COOP_LEASE_AWAITED, COOP_LEASE_PERSISTENT };
enum coop_on_exit { COOP_ON_EXIT_KEEP, COOP_ON_EXIT_KILL };

struct coop_limits {
	int64_t timeout_ms, timeout_grace_ms, idle_timeout_ms, max_lifetime_ms,
		exit_retention_ms; /* 0: none */
};

struct coop_usage {
	uint64_t cpu_ns;        /* of the whole tree; never falls */
	uint64_t reaped_cpu_ns; /* of orphans that the keeper reaped */
	uint64_t peak_bytes;
	uint64_t memory_bytes;
	uint64_t sample_at, sample_cpu_ns; /* the last look that began an interval */
	double cpu_pct;
	bool has_pct;
	unsigned pids;          /* of the tree, at the last look */
	unsigned descendants;   /* likewise, the leader not counted */
	uint64_t buffer_charge; /* what its output counts for in the quotas of its agent */
};

/* The lists that it is in. */
struct coop_process_links {
	struct coop_link all;       /* registry, start order */
	struct coop_link unsettled; /* registry: ended, and may have left somebody behind */
	struct coop_link agent;     /* finished, and may become a receipt */
	struct coop_link principal;
	struct coop_link ended;       /* the end is still to be written down */
	struct coop_link receipts;    /* the principal's */
	struct coop_link session;     /* ends with it */
	struct coop_link completions; /* ended, and waits to be taken */
};

/* What was asked of it; const once it is in the registry, but for what `keep` changes. */
struct coop_process_terms {
	struct coop_limits limits;
	enum coop_term lease;
	enum coop_on_exit on_exit;
	bool pty, merged;
	bool quota_kills;    /* a full spool ends it */
	bool record_failure; /* it leaves a record even if it cannot be started */
	bool completion;     /* its end goes into the queue of its session */
	unsigned short cols, rows;
	uint64_t session_n; /* 0: the agent's default session */
};

/* How far it is: phase.h, and the facts that the table's guards ask for. */
struct coop_process_course {
	enum coop_phase phase;
	bool stopped, stop_asked; /* its program, by a signal; it, by somebody */
	bool killing;       /* its tree is being killed, and the last look has shown somebody */
	unsigned survivors; /* of the last kill */
	uint64_t emptied; /* when the kernel showed that nobody is left, monotonic; 0: not known */
	bool drain_waits; /* it has ended, and a holder keeps its last output in the pipe … */
	uint64_t drain_left; /* … and the end waits so much longer for that */
};

/* What the kernel knows it by. */
struct coop_process_child {
	/* the program's; 0 before it has been executed; stays in the record after the end */
	pid_t pid;
	/* Our own child: the program itself, or the first process of its namespace. 0 before clone;
	 * stays. */
	pid_t root;
	bool root_lives; /* it has not been reaped */
	bool boxed;      /* a first process of its own holds its tree together */
	/* from that one; NULL: there is none, or it is gone */
	struct coop_wire *wire;
	/* attempts to reach other hosts that the kernel counted, when it has ended badly */
	uint64_t unreachable;
};

struct coop_process_times {
	uint64_t asked;        /* when the request was looked at, monotonic, as the next */
	uint64_t started;      /* 0: not yet */
	int64_t started_at;    /* by the wall clock, as the next */
	int64_t owner_told_at; /* when its owner heard of the end; 0: not yet */
	uint64_t told_number;  /* of all ends, in the order of being told; 0: not by this keeper */
};

/* Who has done something that it may end of. */
struct coop_process_blame {
	/* The first rule that decided to end it, before the kernel says so. */
	enum coop_cause forced;
	struct coop_evidence forced_evidence;
	/* bit n: signal n went out through coop and it may still die of it */
	uint64_t signals_sent;
	struct coop_evidence signal_evidence;
};

/* What has been written down of it, or told. */
struct coop_process_books {
	uint64_t audit_seq;      /* of the line that allowed it; 0: none */
	void *journal;           /* its start, as long as that waits to be written */
	char *archived_evidence; /* of a receipt of an earlier keeper: JSON text */
	bool output_told;        /* subscribers have heard that it has printed something */
};

/* Who waits for it, or reads it. */
struct coop_process_audience {
	struct coop_link waiters;   /* requests of `wait` */
	struct coop_link followers; /* struct coop_follow */
	struct coop_link
		holders;    /* for whom it waits rather than lose output: struct coop_holder */
	uint64_t last_hold; /* number of the latest */
	unsigned holder_count;
	unsigned readers; /* followers, and waits that bring the output: it is kept for them */
	struct coop_readers named; /* how far readers with names have come */
};

/* What it is to the connection that started it. */
struct coop_origin {
	const struct coop_conn *starter; /* that has not been told of its end yet; else NULL */
	struct coop_link in_started;     /* of that connection */
	struct coop_link in_lease;       /* ephemeral: it ends with the connection */
};

struct coop_process_clock {
	uv_timer_t timer;
	uint64_t due[COOP_DUE_COUNT]; /* 0: not set */
	uint64_t armed;               /* when the timer fires; 0: it does not */
};

struct coop_process {
	struct coop_keeper *keeper;
	struct coop_agent *agent; /* whose it is; a reference */
	unsigned refs;
	void (*destroy)(struct coop_process *process); /* once there are none */
	uint64_t n;
	char id[40];
	struct coop_labels labels;
	struct coop_process_terms terms;
	struct coop_process_links in;
	struct coop_process_course course;
	struct coop_process_child child;
	struct coop_process_times times;
	struct coop_process_blame blame;
	struct coop_ending end;
	struct coop_output output;
	struct coop_notes notes;
	struct coop_progress *progress; /* NULL: nobody asked for it */
	struct coop_usage usage;
	struct coop_spawn *spawn;     /* while starting */
	struct coop_confine *confine; /* NULL in a record of an earlier keeper */
	struct coop_kill *kill;       /* while being stopped or killed */
	struct coop_process_books books;
	struct coop_process_audience audience;
	struct coop_origin origin;
	struct coop_process_clock clock;
};

/* Whose output it is. */
static inline struct coop_process *coop_process_of(const struct coop_output *output)
{
	return COOP_LIST_ITEM(output, struct coop_process, output);
}

struct coop_process *coop_process_ref(struct coop_process *process);
void coop_process_unref(struct coop_process *process);

/* It belongs to that session, and ends with it. */
void coop_process_join(struct coop_process *process, struct coop_session *session);

/* The request holds it until it is answered. */
void coop_process_hold(struct coop_process *process, struct coop_request *request);

/* Whether a first process of its own holds its tree together, and ends with all of it. */
bool coop_process_boxed(const struct coop_process *process);

/* Our own child has been reaped, or there will be none. With a namespace, nobody is left. */
bool coop_process_gone(const struct coop_process *process);

/* After its end has been told: whether nothing of it stands in folders any more. Placeholders go
 * with the first process, a moment later. True as well while others of it live on, and when it
 * takes too long. */
bool coop_process_tidy(const struct coop_process *process);

/* Whether its end is anybody's news: what was never started and leaves no record is not. */
bool coop_process_is_news(const struct coop_process *process);

/* Somebody will read the output, and holds a reference / has read it. */
void coop_process_reader_begin(struct coop_process *process);
void coop_process_reader_end(struct coop_process *process);

/* Closes the streams of a record that is out of the registry, once nobody reads: what arrives
 * later, from a descendant that got away, is not kept. */
void coop_process_let_go(struct coop_process *process);

/* Its leader lives, or is yet to come. */
bool coop_process_live(const struct coop_process *process);
bool coop_process_reaped(const struct coop_process *process);
bool coop_process_told(const struct coop_process *process);
bool coop_process_receipt(const struct coop_process *process);
/* The registry had it, and has it no more. */
bool coop_process_removed(const struct coop_process *process);

#endif
