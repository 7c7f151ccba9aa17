#include "keeper/tree/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io/procfs.h"
#include "base/mem.h"
#include "keeper/core/keeper.h"
#include "keeper/launch/launcher.h"
#include "keeper/process/process.h"
#include "keeper/process/registry.h"
#include "keeper/tree/orphans.h"

#define UNRESOLVED UINT64_MAX
#define LOOK_SHARE_NS 20000000u /* looks closer together than this are one */

/* The process's own CPU time in nanoseconds: /proc only counts in ticks. */
static uint64_t own_cpu(pid_t pid)
{
	/* The kernel's name for the CPU clock of a process; the C library would ask it first
	 * whether that exists. */
	clockid_t clock = (clockid_t)(~(unsigned)pid << 3 | 2);
	struct timespec used;

	if (clock_gettime(clock, &used) < 0)
		return 0;
	return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

struct coop_tree_entry *coop_tree_find(const struct coop_tree *tree, pid_t pid)
{
	return pid > 0 ? coop_map_get(&tree->index, (uint64_t)pid) : NULL;
}

/* What the entry itself shows, without asking its parents: its record's n, 0 for none, UNRESOLVED
 * if the parent decides. */
static uint64_t own_owner(const struct coop_keeper *keeper, const struct coop_tree *last,
			  const struct coop_tree_entry *entry, pid_t self)
{
	const struct coop_process *leader = coop_registry_by_pid(keeper, entry->proc.pid);

	if (leader)
		return leader->n;
	if (entry->proc.pid == self || coop_launcher_by_pid(keeper, entry->proc.pid) ||
	    entry->proc.parent == 0)
		return 0;
	return entry->proc.parent == self ? coop_orphans_owner(keeper, last, &entry->proc)
					  : UNRESOLVED;
}

static void resolve(const struct coop_keeper *keeper, const struct coop_tree *last,
		    struct coop_tree *tree)
{
	/* In our own session are the launcher and children that are being started: no strays. */
	pid_t self = getpid(), session = getsid(0);

	for (size_t i = 0; i < tree->count; i++) {
		struct coop_tree_entry *entry = &tree->entries[i], *top = entry;
		uint64_t owner;
		/* Up until somebody knows; a table that changes while it is read could hold a loop,
		 * hence the bound. */
		for (size_t steps = 0;; steps++) {
			owner = top->owner != UNRESOLVED ? top->owner
							 : own_owner(keeper, last, top, self);
			struct coop_tree_entry *parent = coop_tree_find(tree, top->proc.parent);
			if (owner != UNRESOLVED || !parent || steps > tree->count)
				break;
			top = parent;
		}
		owner = owner == UNRESOLVED ? 0 : owner;
		/* Everything on the way there has the same owner. */
		for (struct coop_tree_entry *at = entry; at && at->owner == UNRESOLVED;
		     at = coop_tree_find(tree, at->proc.parent)) {
			at->owner = owner;
			if (at == top)
				break;
		}
		if (!entry->owner && entry->proc.parent == self && !entry->proc.dead &&
		    entry->proc.session != session &&
		    !coop_tree_of(keeper)->is_prepared(keeper, entry->proc.pid) &&
		    !coop_orphans_prepared(keeper, entry->proc.pid))
			tree->strays++;
		if (entry->owner)
			entry->proc.cpu_ns += own_cpu(entry->proc.pid);
		const struct coop_process *rooted = coop_registry_by_pid(keeper, entry->proc.pid);
		entry->custodian = rooted && coop_process_boxed(rooted);
	}
}

static int append(void *user, const struct coop_proc *proc)
{
	struct coop_tree *tree = user;

	if (tree->count == tree->capacity) {
		size_t capacity = tree->capacity ? tree->capacity * 2 : 512;
		void *grown = coop_mem_realloc(tree->entries, capacity * sizeof *tree->entries);
		if (!grown)
			return -ENOMEM;
		tree->entries = grown;
		tree->capacity = capacity;
	}
	tree->entries[tree->count++] = (struct coop_tree_entry){.proc = *proc, .owner = UNRESOLVED};
	return 0;
}

/* Indexed when all are there: the array moves while it grows. */
static int scan(struct coop_tree *tree)
{
	int r = coop_proc_each(append, tree);

	for (size_t i = 0; r == 0 && i < tree->count; i++)
		r = coop_map_put(&tree->index, (uint64_t)tree->entries[i].proc.pid,
				 &tree->entries[i]);
	return r;
}

/* Adds up what each record's processes use, once for all who ask. */
static int add_up(struct coop_tree *tree)
{
	size_t used = 0;

	tree->sums = coop_mem_zalloc(tree->count * sizeof *tree->sums);
	if (!tree->sums)
		return -ENOMEM;
	for (size_t i = 0; i < tree->count; i++) {
		const struct coop_tree_entry *entry = &tree->entries[i];
		if (!entry->owner || entry->proc.dead || entry->custodian)
			continue;
		struct coop_tree_sum *sum = coop_map_get(&tree->sum_of, entry->owner);
		if (!sum) {
			sum = &tree->sums[used++];
			if (coop_map_put(&tree->sum_of, entry->owner, sum) < 0)
				return -ENOMEM;
		}
		sum->cpu_ns += entry->proc.cpu_ns;
		sum->memory_bytes += entry->proc.memory_bytes;
		sum->pids++;
	}
	return 0;
}

struct coop_tree_sum coop_tree_sum(const struct coop_keeper *keeper,
				   const struct coop_process *process)
{
	const struct coop_tree_sum *sum = coop_map_get(&coop_tree_of(keeper)->sum_of, process->n);

	return sum ? *sum : (struct coop_tree_sum){0};
}

static void clear(struct coop_tree *tree)
{
	free(tree->entries);
	free(tree->sums);
	coop_map_clear(&tree->sum_of);
	coop_map_clear(&tree->index);
}

/* The old table stays until the new one is whole: it says whose an orphan was, and without memory
 * it is better than none. */
int coop_tree_look(struct coop_keeper *keeper)
{
	struct coop_tree *tree = coop_tree_of(keeper), fresh = *tree;
	uint64_t began = coop_clock_now();

	fresh.entries = NULL;
	fresh.count = fresh.capacity = 0;
	fresh.index = fresh.sum_of = (struct coop_map){0};
	fresh.sums = NULL;
	fresh.strays = 0;
	fresh.taken = began;
	int r = scan(&fresh);
	if (r < 0) {
		clear(&fresh);
		return r;
	}
	resolve(keeper, tree, &fresh);
	r = add_up(&fresh);
	if (r < 0) {
		clear(&fresh);
		return r;
	}
	fresh.cost = coop_clock_now() - began;
	clear(tree);
	*tree = fresh;
	return 0;
}

struct coop_tree *coop_tree_new(bool (*is_prepared)(const struct coop_keeper *keeper, pid_t pid))
{
	struct coop_tree *tree = coop_mem_zalloc(sizeof *tree);

	if (tree)
		tree->is_prepared = is_prepared;
	return tree;
}

unsigned coop_tree_strays(const struct coop_keeper *keeper)
{
	return coop_tree_of(keeper)->strays;
}

uint64_t coop_tree_taken(const struct coop_keeper *keeper)
{
	return coop_tree_of(keeper)->taken;
}

void coop_tree_unsweep(struct coop_keeper *keeper)
{
	coop_tree_of(keeper)->swept = 0;
}

/* Where a look takes long, it is shared for longer: no more than a fifth of the time goes into
 * looking. */
int coop_tree_look_lately(struct coop_keeper *keeper)
{
	uint64_t share = LOOK_SHARE_NS > coop_tree_of(keeper)->cost * 4
				 ? LOOK_SHARE_NS
				 : coop_tree_of(keeper)->cost * 4;

	if (coop_tree_of(keeper)->taken && coop_clock_now() - coop_tree_of(keeper)->taken < share)
		return 0;
	return coop_tree_look(keeper);
}

int coop_tree_look_this_turn(struct coop_keeper *keeper)
{
	return coop_tree_of(keeper)->taken > coop_tree_of(keeper)->turn ? 0
									: coop_tree_look(keeper);
}

void coop_tree_turn_over(struct coop_keeper *keeper)
{
	coop_tree_of(keeper)->turn = coop_clock_now();
}

/* The pid belongs to somebody new: the table must not answer for it any more. */
void coop_tree_forget(struct coop_keeper *keeper, pid_t pid)
{
	if (coop_tree_find(coop_tree_of(keeper), pid))
		coop_tree_of(keeper)->taken = 0;
}

void coop_tree_each(const struct coop_keeper *keeper, const struct coop_process *process,
		    void (*call)(void *user, const struct coop_proc *member), void *user)
{
	for (size_t i = 0; i < coop_tree_of(keeper)->count; i++) {
		const struct coop_tree_entry *entry = &coop_tree_of(keeper)->entries[i];
		if (entry->owner == process->n && !entry->proc.dead && !entry->custodian)
			call(user, &entry->proc);
	}
}

size_t coop_tree_count(const struct coop_keeper *keeper, const struct coop_process *process)
{
	return coop_tree_sum(keeper, process).pids;
}

void coop_tree_free(struct coop_tree *tree)
{
	clear(tree);
	coop_map_clear(&tree->orphaned);
	if (tree->children_fd > 0)
		(void)close(tree->children_fd);
	free(tree);
}
