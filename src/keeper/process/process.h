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
#include "keeper/output/index.h"
#include "keeper/output/note.h"
#include "keeper/output/stdin.h"
#include "keeper/output/stream.h"
#include "keeper/process/deadlines.h"
#include "keeper/process/reader.h"

struct coop_agent;
struct coop_confine;
struct coop_digest;
struct coop_keeper;
struct coop_kill;
struct coop_progress;
struct coop_spool;
struct coop_spawn;
struct coop_wire;

enum coop_state {
	COOP_STATE_STARTING,
	COOP_STATE_RUNNING,
	COOP_STATE_STOPPED,
	COOP_STATE_STOPPING,
	COOP_STATE_EXITED,
	COOP_STATE_SIGNALED,
	COOP_STATE_COUNT,
};

/* What moves the state. All but STOP_ASKED come from the kernel. */
enum coop_event {
	COOP_EVENT_EXECUTED,
	COOP_EVENT_STOPPED,
	COOP_EVENT_CONTINUED,
	COOP_EVENT_STOP_ASKED,
	COOP_EVENT_EXITED,
	COOP_EVENT_SIGNALED,
	COOP_EVENT_COUNT,
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

enum coop_term { COOP_LEASE_EPHEMERAL, COOP_LEASE_AWAITED, COOP_LEASE_PERSISTENT };
enum coop_on_exit { COOP_ON_EXIT_KEEP, COOP_ON_EXIT_KILL };

struct coop_limits {
	int64_t timeout_ms, timeout_grace_ms, idle_timeout_ms, max_lifetime_ms,
		exit_retention_ms; /* 0: none */
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

struct coop_usage {
	uint64_t cpu_ns;        /* of the whole tree; never falls */
	uint64_t reaped_cpu_ns; /* of orphans that the keeper reaped */
	uint64_t peak_bytes;
	uint64_t memory_bytes;
	uint64_t sample_at, sample_cpu_ns; /* the last look that began an interval */
	double cpu_pct;
	bool has_pct;
	unsigned pids; /* of the tree, at the last look */
};

/* What it is to the connection that started it. */
struct coop_origin {
	const struct coop_conn *starter; /* that has not been told of its end yet; else NULL */
	struct coop_link in_started;     /* of that connection */
	struct coop_link in_lease;       /* ephemeral: it ends with the connection */
};

struct coop_process {
	struct coop_keeper *keeper;
	struct coop_agent *agent; /* whose it is; a reference */
	unsigned refs;
	struct coop_link in_all;       /* registry, start order */
	struct coop_link in_unsettled; /* registry: ended, and may have left somebody behind */
	struct coop_link in_agent;     /* finished, and may become a receipt */
	struct coop_link in_principal;
	struct coop_link in_ended;    /* the end is still to be written down */
	struct coop_link in_receipts; /* the principal's */
	struct coop_link in_session;  /* ends with it */
	uint64_t n;
	char id[40];

	struct coop_labels labels;
	struct coop_limits limits;
	enum coop_term lease;
	enum coop_on_exit on_exit;
	bool pty, merged, quota_kills, record_failure;
	unsigned short cols, rows;

	enum coop_state state;
	/* the program's; 0 before it has been executed; stays in the record after the end */
	pid_t pid;
	/* Our own child: the program itself, or the first process of its namespace. 0 before clone;
	 * stays. */
	pid_t root_pid;
	bool root_gone;   /* reaped: with a namespace, all of it */
	bool drain_waits; /* it has ended, and a holder keeps its last output in the pipe */
	int64_t started_at;
	uint64_t started;
	int64_t last_output_at; /* by the wall clock; 0: none yet */
	uint64_t asked;         /* when the request was looked at, monotonic */
	bool reaped;            /* the leader */
	bool drain_over;        /* enough was waited for its output */
	bool told, receipt, removed;
	bool owner_told;        /* its owner knows of the end */
	bool output_told;       /* subscribers have heard that it has printed something */
	bool completion;        /* its end goes into the queue of its session */
	uint64_t told_number;   /* of all ends, in the order of being told; 0: not by this keeper */
	uint64_t session_n;     /* 0: the agent's default session */
	uint64_t audit_seq;     /* of the line that allowed it; 0: none */
	uint64_t buffer_charge; /* what it counts for in the quotas of its agent */
	void *journal;          /* its start, as long as that waits to be written */
	char *archived_evidence; /* of a receipt of an earlier keeper: JSON text */
	bool unkillable;         /* the last kill left survivors */
	struct coop_ending end;
	/* The first rule that decided to end it, before the kernel says so. */
	enum coop_cause forced;
	struct coop_evidence forced_evidence;
	/* bit n: signal n went out through coop and it may still die of it */
	uint64_t signals_sent;
	struct coop_evidence signal_evidence;

	struct coop_outlet streams[2]; /* stdout and stderr, or the terminal alone */
	int stream_count;
	struct coop_index index;
	struct coop_notes notes;
	uint64_t exit_cursor; /* valid once told */
	struct coop_stdin input;
	struct coop_spool *spool;  /* NULL without */
	struct coop_readers named; /* how far readers with names have come */

	/* What the spawn asked to be told of. */
	struct coop_digest *digest;      /* NULL: nobody did */
	struct coop_progress *progress;  /* NULL: nobody did */
	struct coop_link in_completions; /* ended, and waits to be taken */

	struct coop_usage usage;
	unsigned descendants; /* at the last look */
	bool childless;       /* ended, and known to have left nobody behind */

	struct coop_spawn *spawn;     /* while starting */
	struct coop_confine *confine; /* NULL in a record of an earlier keeper */
	/* from the first process of its namespace; NULL: there is none, or it is gone */
	struct coop_wire *wire;
	struct coop_kill *kill;     /* while being stopped or killed */
	struct coop_link waiters;   /* requests of `wait` */
	struct coop_link followers; /* struct coop_follow */
	/* For whom it waits rather than lose output: struct coop_holder. */
	struct coop_link holders;
	uint64_t last_hold;  /* number of the latest */
	uint64_t drain_left; /* while drain_waits: the end waits so much longer for its output */
	unsigned holder_count;
	unsigned readers; /* followers, and waits that bring the output: it is kept for them */
	struct coop_origin origin;

	uv_timer_t timer;
	uint64_t due[COOP_DUE_COUNT]; /* 0: not set */
	uint64_t armed;               /* when the timer fires; 0: it does not */
};

/* A new process in state starting, one reference held by the caller; NULL without memory. */
struct coop_process *coop_process_new(struct coop_agent *agent);
struct coop_process *coop_process_ref(struct coop_process *process);
void coop_process_unref(struct coop_process *process);

static inline bool coop_process_live(const struct coop_process *process)
{
	return process->state < COOP_STATE_EXITED;
}

const char *coop_cause_name(enum coop_cause cause);
/* The cause of that name; NONE if there is none. */
enum coop_cause coop_cause_parse(const char *name);

/* The one transition function. Events that do not apply to the present state are ignored. */
void coop_process_event(struct coop_process *process, enum coop_event event);

/* The program has been executed: clocks start. */
void coop_process_executed(struct coop_process *process);

/* The kernel reported the leader's end; status as of waitpid. */
void coop_process_ended(struct coop_process *process, int wait_status, const struct rusage *usage);

/* Whether a first process of its own holds its tree together, and ends with all of it. */
bool coop_process_boxed(const struct coop_process *process);

/* After its end has been told: whether nothing of it stands in folders any more. Placeholders go
 * with the first process, a moment later. True as well while others of it live on, and when it
 * takes too long. */
bool coop_process_tidy(const struct coop_process *process);
/* It is so from now on: whoever waits for that is answered. */
void coop_process_tidied(struct coop_process *process);

/* The first process told of the program's end, and whether anybody else is left. */
void coop_process_program_ended(struct coop_process *process, int wait_status,
				const struct rusage *usage, bool alone);

/* Our own child is reaped: with a namespace nobody is left. */
void coop_process_root_gone(struct coop_process *process);

/* It was allowed, and for want of something it came to no attempt: the audit must hear of that. */
void coop_process_not_started(struct coop_process *process);

/* A spawn that failed leaves a finished record (record_failure). */
void coop_process_failed(struct coop_process *process, int exit_code);

/* Writes the ends that have been told to audit and database: after those who wait for them have
 * been answered. */
void coop_process_write_ends(struct coop_keeper *keeper);

/* A holder keeps the output of an ended process from being read: the time that the end waits for it
 * does not run. */
void coop_process_drain_pause(struct coop_process *process);
/* It is read again. */
void coop_process_drain_resume(struct coop_process *process);

/* Looks whether the end can be told now, and tells it. Called when something it waits for may have
 * happened. */
void coop_process_settle(struct coop_process *process);

/* Records the first rule that ends the process; later ones change nothing. */
void coop_process_force(struct coop_process *process, enum coop_cause cause,
			const struct coop_evidence *evidence);

/* Output, input or an owner's call: the idle clock restarts. */
void coop_process_touch(struct coop_process *process);

/* Somebody will read the output, and holds a reference / has read it. */
void coop_process_reader_begin(struct coop_process *process);
void coop_process_reader_end(struct coop_process *process);

/* The last of the streams of an ended process has ended: from now on it counts with what it
 * holds. */
void coop_process_recharge(struct coop_process *process);

/* Its owner has been told of the end. */
void coop_process_owner_told(struct coop_process *process);

/* Closes the streams of a record that is out of the registry, once nobody reads: what arrives
 * later, from a descendant that got away, is not kept. */
void coop_process_let_go(struct coop_process *process);

/* Gives up output and events; what remains is a receipt. */
void coop_process_shed(struct coop_process *process);

/* The stream of that number (1 stdout, 2 stderr, 3 pty), or NULL. */
struct coop_outlet *coop_process_stream(struct coop_process *process, unsigned number);

#endif
