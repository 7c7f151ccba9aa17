/* Ends a whole tree and proves it. One in a PID namespace ends with its first process: when that
 * has been reaped, the kernel has seen to it that nobody is left. Of others: SIGSTOP everything
 * until nothing new appears, SIGKILL all, look again whenever a process of the tree has been
 * reaped, until the kernel shows none. A stop begins with SIGTERM and a grace. */
#ifndef COOP_KEEPER_KILL_H
#define COOP_KEEPER_KILL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/json/jsonw.h"
#include "base/list.h"
#include "base/map.h"
#include "keeper/process/process.h"

struct coop_request;

/* Why and by whom; `grace_ms` 0 kills at once. */
struct coop_kill_order {
	enum coop_cause cause;
	struct coop_evidence evidence;
	uint64_t grace_ms;
	int ask; /* the signal that asks politely; 0: SIGTERM */
};

struct coop_kill {
	struct coop_process *process; /* a reference */
	struct coop_link in_keeper;
	uint64_t began;
	bool killing;     /* the grace is over */
	bool nobody_left; /* at the last look */
	bool struck;      /* the first process of the namespace has been killed */
	pid_t *signalled; /* for the receipt */
	size_t signalled_count, signalled_capacity;
	struct coop_map noted;   /* the same, as a set */
	struct coop_map stopped; /* those that have been sent SIGSTOP */
	unsigned survivors;
	struct coop_link requests; /* each is answered by its on_killed */
	struct coop_link members;  /* struct coop_party_member */
	int ask;                   /* signal */
};

/* The proof, as it is sent. */
struct coop_kill_receipt {
	bool success;
	const pid_t *signalled;
	size_t signalled_count;
	unsigned survivors;
	/* living processes that belong to no record: nobody can say that none of them came from
	 * here */
	unsigned strays;
	uint64_t ms;
};

/* Begins, or joins one that is under way (a shorter grace wins). Does nothing to a process whose
 * tree is known to be empty. 0 or -ENOMEM (then nothing was begun). */
int coop_kill_begin(struct coop_process *process, const struct coop_kill_order *order);

/* `request` is answered with the receipt when the kill is over; at once if none is under way. */
void coop_kill_await(struct coop_process *process, struct coop_request *request);

/* NULL without memory. */
struct coop_kills *coop_kills_new(struct coop_keeper *keeper);
/* Whether any is under way. */
bool coop_kills_any(const struct coop_keeper *keeper);

void coop_kill_grace_over(struct coop_process *process);
void coop_kill_limit_reached(struct coop_process *process);

/* The process under a kill turned out to have a pid only now. */
void coop_kill_started(struct coop_process *process);

/* Some process of the tree was reaped. */
void coop_kill_look_again(struct coop_process *process);

/* Writes the members success … ms of a receipt. */
void coop_receipt_write(const struct coop_kill_receipt *receipt, struct coop_jsonw *w);

#endif
