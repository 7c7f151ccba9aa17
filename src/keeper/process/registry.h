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

/* NULL without memory. */
struct coop_registry *coop_registry_new(void);
/* Reads which numbers have been given out. 0, or the error filled. */
int coop_registry_open(struct coop_keeper *keeper, struct coop_err *err);
void coop_registry_clear(struct coop_keeper *keeper);

/* struct coop_process by their in_all, in the order of their start, receipts included. */
struct coop_link *coop_registry_all(const struct coop_keeper *keeper);
/* Ended records that may have left descendants, by their in_unsettled; few. */
struct coop_link *coop_registry_unsettled(const struct coop_keeper *keeper);
unsigned coop_registry_unsettled_count(const struct coop_keeper *keeper);
/* Ends that have been told, ever. */
uint64_t coop_registry_told(const struct coop_keeper *keeper);
/* The number that the next process gets. */
uint64_t coop_registry_next(const struct coop_keeper *keeper);
/* How many live, or have ended and are records; and one more, or less, of either. */
unsigned coop_registry_live(const struct coop_keeper *keeper);
unsigned coop_registry_finished_count(const struct coop_keeper *keeper);
void coop_registry_count(struct coop_keeper *keeper, int live, int finished);
/* The one of that number, or NULL, also for 0. */
struct coop_process *coop_registry_by_number(const struct coop_keeper *keeper, uint64_t n);
/* By the leader's pid, which is the session's and the group's number too, for as long as the record
 * is whole. */
struct coop_process *coop_registry_by_session(const struct coop_keeper *keeper, pid_t session);

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
