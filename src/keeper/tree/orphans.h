/* Processes whose parent died, and whose they are.
 *
 * Without a PID namespace such a process becomes the keeper's child (it is a subreaper), and the
 * kernel does not say whose it was. It is assigned by, in order: the mark that every process of
 * ours inherits (a limit, see sandbox/plan/plan.h), what was seen earlier, the record's session or
 * group. What shows none is a stray: counted, and ended with the keeper. */
#ifndef COOP_KEEPER_ORPHANS_H
#define COOP_KEEPER_ORPHANS_H

#include "keeper/tree/tree.h"

/* Whether that child is a sandbox without a command: its mark has no number. One that is still
 * being made, or already leaving, is in no list. */
bool coop_orphans_prepared(const struct coop_keeper *keeper, pid_t pid);

/* The record that an orphan belongs to; 0: none. `last` is an earlier look. */
uint64_t coop_orphans_owner(const struct coop_keeper *keeper, const struct coop_tree *last,
			    const struct coop_proc *proc);

typedef void (*coop_orphans_call)(void *user, const struct coop_tree_entry *entry);

/* Calls for each living child of the keeper that is neither a leader nor the launcher, with its
 * owner filled in, as soon as it is found; for those who move faster than a look. Goes over them
 * again until nobody can have been missed, so the call sees them more than once. Their pids are the
 * keeper's unreaped children, and can be signalled as they are. 0; 1 if time was up before that was
 * certain; -errno where the kernel does not list children. */
int coop_orphans_each(struct coop_keeper *keeper, uint64_t limit_ns, coop_orphans_call call,
		      void *user);

/* How sure an answer must be: a thorough one costs more where processes come and go without
 * pause. */
enum coop_care { COOP_QUICK, COOP_THOROUGH };

/* Whether an ended record still owns living processes. Cheap when it does not. */
bool coop_orphans_left(struct coop_keeper *keeper, struct coop_process *process,
		       enum coop_care care);

/* Some died: notes which ended records own nobody any more, and with that their session's
 * number. */
void coop_orphans_recount(struct coop_keeper *keeper);

/* The same as `left` for records that are about to be given up: true also where it is not certain
 * yet. */
bool coop_orphans_may_be_left(struct coop_keeper *keeper, struct coop_process *process);

/* The record that a dead, not yet reaped child belonged to; 0: unknown. */
uint64_t coop_orphans_owner_of_dead(struct coop_keeper *keeper, pid_t pid);

#endif
