/* All processes of the keeper: by number, by pid, in the order of their start; and the caps on what
 * is kept. */
#ifndef COOP_KEEPER_REGISTRY_H
#define COOP_KEEPER_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "base/map.h"
#include "interface/err.h"

struct coop_keeper;
struct coop_process;

struct coop_registry {
	struct coop_map by_n, by_pid;
	/* By the leader's pid, which is the session's and the group's number too, for as long as
	 * the record is whole. */
	struct coop_map by_session;
	struct coop_link all;       /* start order, receipts included */
	struct coop_link unsettled; /* ended records that may have left descendants; few */
	unsigned unsettled_count;
	unsigned live, finished_count;
	int64_t surplus;             /* finished records above their agents' caps */
	uint64_t told_count;         /* ends that have been told, ever */
	uint64_t next_n, reserved_n; /* ids below reserved_n are taken on disk */
	bool reserving;
	bool receipts_over; /* some principal may have more than it is allowed */
};

int coop_registry_init(struct coop_keeper *keeper, struct coop_err *err);
void coop_registry_free(struct coop_keeper *keeper);

/* Numbers up to `last` have been given out: 0, or the error filled. Before the loop runs. */
int coop_registry_skip(struct coop_keeper *keeper, uint64_t last, struct coop_err *err);

/* Whether anything can be started at all: 0, or the error filled. Limits are the quota's affair. */
int coop_registry_admit(struct coop_keeper *keeper, struct coop_err *err);

/* Adds a process under a new number, taking a reference. 0 or -ENOMEM. */
int coop_registry_add(struct coop_process *process);

/* Our child's pid is known: 0, -ENOMEM, or -ECANCELED (the record is gone already). */
int coop_registry_set_root(struct coop_process *process, pid_t pid);
/* The program's pid is known, and with it the id. */
void coop_registry_name(struct coop_process *process, pid_t pid);
/* It was not our child after all, or is not any more without having been the process. */
void coop_registry_unset_root(struct coop_process *process);
/* Our child has been reaped. */
void coop_registry_clear_pid(struct coop_process *process);
/* Whether our child is not reaped yet: only then is its pid safe to use. */
bool coop_registry_has_root(const struct coop_process *process);
struct coop_process *coop_registry_by_pid(const struct coop_keeper *keeper, pid_t pid);

/* The process has been told: it counts as finished. */
void coop_registry_finished(struct coop_process *process);
/* The record has become a receipt. */
void coop_registry_shed(struct coop_process *process);
/* It is known to have left nobody behind. */
void coop_registry_settled(struct coop_process *process);
/* A receipt of an earlier keeper, under its old number. 0 or -ENOMEM. */
int coop_registry_add_receipt(struct coop_process *process);

/* Takes it out for good and drops the registry's reference. */
void coop_registry_remove(struct coop_process *process);

#endif
