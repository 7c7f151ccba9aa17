/* Who belongs to whom: the kernel's process table, and the owner of every orphan.
 *
 * Without a PID namespace a process whose parent died becomes the keeper's child (it is a subreaper), and the kernel does not say
 * whose it was. It is assigned by, in order: living parents, what was seen earlier, the record's session or group, the
 * variable COOP_PROCESS in its environment. What shows none is a stray: counted, and ended with the keeper. */
#ifndef COOP_KEEPER_TREE_H
#define COOP_KEEPER_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/map.h"

struct coop_keeper;
struct coop_process;

struct coop_tree_entry {
	pid_t pid, parent, group, session;
	uint64_t start_time; /* with the pid it names a process for ever */
	uint64_t cpu_ns;     /* its own and its reaped children's */
	uint64_t memory_bytes;
	uint64_t owner; /* n of the record; 0: none of ours */
	bool exiting;   /* on its way to becoming a zombie */
	char state;     /* as in /proc/PID/stat; Z and X are dead */
};

struct coop_tree {
	struct coop_tree_entry *entries;
	size_t count, capacity;
	uint64_t taken; /* monotonic; 0: never */
	uint64_t cost;
	struct coop_map index;    /* pid -> entry */
	int children_fd;          /* the kernel's list of our children; 0: not open yet */
	struct coop_map orphaned; /* n of the records that had orphans at the last sweep */
	uint64_t swept;           /* when that began */
	bool swept_whole;         /* nobody can have been missed */
	unsigned strays;
};

/* Takes a fresh look at /proc. 0 or -errno (the last look stays). */
int coop_tree_look(struct coop_keeper *keeper);

/* As fresh as is cheap: repeated looks within a short time share one, so that statistics can never eat the keeper. */
int coop_tree_look_lately(struct coop_keeper *keeper);

/* Living members of a record's tree at the last look, the leader included. */
size_t coop_tree_count(const struct coop_keeper *keeper, const struct coop_process *process);

/* Calls for each living member. */
void coop_tree_each(const struct coop_keeper *keeper, const struct coop_process *process,
		    void (*call)(void *user, const struct coop_tree_entry *entry), void *user);

/* Signals exactly the process of the entry, or nobody: a reused pid is never hit. 0 or -errno (-ESRCH: gone). */
int coop_tree_signal(const struct coop_tree_entry *entry, int number);

typedef void (*coop_tree_call)(void *user, const struct coop_tree_entry *entry);

/* Calls for each living child of the keeper that is neither a leader nor the launcher, with its owner filled in, as soon as it
 * is found; for those who move faster than a look. Goes over them again until nobody can have been missed, so the call sees
 * them more than once. Their pids are the keeper's unreaped children, and can be signalled as they are. 0; 1 if time was up
 * before that was certain; -errno where the kernel does not list children. */
int coop_tree_orphans(struct coop_keeper *keeper, uint64_t limit_ns, coop_tree_call call,
		      void *user);

/* How sure an answer must be: a thorough one costs more where processes come and go without pause. */
enum coop_care { COOP_QUICK, COOP_THOROUGH };

/* Whether an ended record still owns living processes. Cheap when it does not. */
bool coop_tree_has_orphans(struct coop_keeper *keeper, struct coop_process *process,
			   enum coop_care care);

/* The same for records that are about to be given up: true also where it is not certain yet. */
bool coop_tree_may_have_orphans(struct coop_keeper *keeper, struct coop_process *process);

/* The record that a dead, not yet reaped child belonged to; 0: unknown. */
uint64_t coop_tree_owner_of_dead(struct coop_keeper *keeper, pid_t pid);

void coop_tree_free(struct coop_keeper *keeper);

#endif
