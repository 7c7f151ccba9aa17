/* Who belongs to whom: the kernel's process table, with the record that owns each process. */
#ifndef COOP_KEEPER_TREE_H
#define COOP_KEEPER_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/io/procfs.h"
#include "base/map.h"

struct coop_keeper;
struct coop_process;

struct coop_tree_entry {
	struct coop_proc proc; /* cpu_ns with its own, where it is of a record */
	uint64_t owner;        /* n of the record; 0: none of ours */
	/* the first process of a record's namespace: not part of what it looks after */
	bool custodian;
};

/* What a record's living processes use together. */
struct coop_tree_sum {
	uint64_t cpu_ns, memory_bytes;
	unsigned pids;
};

struct coop_tree {
	/* Whether that child of ours is a sandbox that waits for a command. */
	bool (*is_prepared)(const struct coop_keeper *keeper, pid_t pid);
	struct coop_tree_entry *entries;
	size_t count, capacity;
	uint64_t taken; /* monotonic; 0: never */
	uint64_t turn;  /* when the loop's last turn was over */
	uint64_t cost;
	struct coop_map index; /* pid -> entry */
	struct coop_tree_sum *sums;
	struct coop_map sum_of;   /* n of the record -> sum */
	int children_fd;          /* the kernel's list of our children; 0: not open yet */
	struct coop_map orphaned; /* n of the records that had orphans at the last sweep */
	uint64_t swept;           /* when that began */
	bool swept_whole;         /* nobody can have been missed */
	unsigned strays;
};

/* Living processes that belonged to no record at the last look; when that was (monotonic; 0:
 * never). */
unsigned coop_tree_strays(const struct coop_keeper *keeper);
uint64_t coop_tree_taken(const struct coop_keeper *keeper);
/* Whoever was said to have orphans may have none any more: the next question looks again. */
void coop_tree_unsweep(struct coop_keeper *keeper);

/* Takes a fresh look at /proc. 0 or -errno (the last look stays). */
int coop_tree_look(struct coop_keeper *keeper);

/* As fresh as is cheap: repeated looks within a short time share one, so that statistics can never
 * eat the keeper. */
int coop_tree_look_lately(struct coop_keeper *keeper);

/* As fresh as a request that was sent in answer to anything the keeper has said: those of one turn
 * of the loop share a look, so that a thousand kills that were asked for at once cost one. */
int coop_tree_look_this_turn(struct coop_keeper *keeper);
/* The turn is over: the loop is about to sleep. */
void coop_tree_turn_over(struct coop_keeper *keeper);

/* That process has become the root of a record: a look that saw it before did not know, and
 * serves nobody any more. */
void coop_tree_forget(struct coop_keeper *keeper, pid_t pid);

/* Living members of a record's tree at the last look, the leader included. */
size_t coop_tree_count(const struct coop_keeper *keeper, const struct coop_process *process);

/* Their sum at the last look; all zero if there are none. */
struct coop_tree_sum coop_tree_sum(const struct coop_keeper *keeper,
				   const struct coop_process *process);

/* Calls for each living member. */
void coop_tree_each(const struct coop_keeper *keeper, const struct coop_process *process,
		    void (*call)(void *user, const struct coop_proc *member), void *user);

/* The entry of that pid at the last look, or NULL. */
struct coop_tree_entry *coop_tree_find(const struct coop_tree *tree, pid_t pid);

/* NULL without memory. */
struct coop_tree *coop_tree_new(bool (*is_prepared)(const struct coop_keeper *keeper, pid_t pid));
void coop_tree_free(struct coop_tree *tree);

#endif
