#include "keeper/tree/orphans.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io/procfs.h"
#include "base/map.h"
#include "keeper/core/keeper.h"
#include "keeper/launch/launcher.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/process/registry.h"
#include "keeper/process/report.h"
#include "keeper/tree/tree.h"
#include "sandbox/plan/plan.h"

#define SWEEP_AGE_NS 100000000u
#define SWEEP_SHORT_NS 2000000u  /* for a count that somebody wants to see */
#define SWEEP_LONG_NS 100000000u /* before something is declared to be over */

/* The record whose leader has, or had, that pid as its session or group. The number is not given
 * out anew while one of them lives; once none does, it says nothing any more. */
static uint64_t by_session(const struct coop_keeper *keeper, const struct coop_proc *proc)
{
	const pid_t numbers[] = {proc->session, proc->group};

	for (size_t i = 0; i < 2; i++) {
		const struct coop_process *process =
			numbers[i] > 0 ? coop_registry_by_session(keeper, numbers[i]) : NULL;
		/* A dead one, not reaped yet, still holds its numbers, however little else is
		 * left. */
		if (process && (!process->course.emptied || proc->dead))
			return process->n;
	}
	return 0;
}

/* A slot carries the keeper's mark without a record's number: it is nobody's yet. */
bool coop_orphans_prepared(const struct coop_keeper *keeper, pid_t pid)
{
	return coop_proc_mark(pid) == coop_place_of(keeper)->mark;
}

/* Every process carries the number of its record in a limit that the kernel hands on to whatever it
 * starts, and obeys nowhere. */
static uint64_t by_mark(const struct coop_keeper *keeper, pid_t pid)
{
	uint64_t n = coop_proc_mark(pid) ^ coop_place_of(keeper)->mark;

	return n <= COOP_MARK_NUMBER && coop_registry_by_number(keeper, n) ? n : 0;
}

/* The mark first: it goes through fork and exec whatever becomes of session, group and
 * environment. */
uint64_t coop_orphans_owner(const struct coop_keeper *keeper, const struct coop_tree *last,
			    const struct coop_proc *proc)
{
	const struct coop_tree_entry *seen = coop_tree_find(last, proc->pid);
	uint64_t n = by_mark(keeper, proc->pid);

	if (n)
		return n;
	if (seen && seen->proc.start_time == proc->start_time && seen->owner &&
	    coop_registry_by_number(keeper, seen->owner))
		return seen->owner;
	return by_session(keeper, proc);
}

/* One pass over the keeper's children that are neither leaders nor the launcher. */
struct pass {
	struct coop_keeper *keeper;
	coop_orphans_call call;
	void *user;
	int count;
	/* so many at the front of the list are dead, and stay so: the next pass need not look at
	 * them */
	int dead;
};

static void meet(struct pass *pass, const struct pass *last, pid_t pid)
{
	struct coop_tree_entry entry = {0};

	if (pass->count++ < last->dead) {
		pass->dead++;
		return;
	}
	if (coop_proc_read(pid, &entry.proc) < 0 || entry.proc.dead) {
		pass->dead += pass->dead == pass->count - 1;
		return;
	}
	/* Still in our own session: a child that is being started, and no orphan of anybody. */
	if (entry.proc.session == getsid(0)) {
		pass->count--;
		return;
	}
	entry.owner = coop_orphans_owner(pass->keeper, coop_tree_of(pass->keeper), &entry.proc);
	pass->call(pass->user, &entry);
}

/* 0, or -errno where the kernel does not list children. The list is read at every exit, so its file
 * stays open. */
static int make_pass(struct pass *pass, const struct pass *last)
{
	struct coop_tree *tree = coop_tree_of(pass->keeper);
	char path[64], text[4097];
	size_t kept = 0;
	off_t offset = 0;
	bool more = false;
	ssize_t n;

	if (tree->children_fd <= 0) {
		(void)snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
		tree->children_fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (tree->children_fd < 0)
		return -errno;
	do {
		size_t room = sizeof text - 1 - kept;
		char *at = text, *space;
		n = pread(tree->children_fd, text + kept, room, offset);
		if (n <= 0)
			break;
		offset += n;
		/* The kernel gives whole numbers only: a piece that is short by more than one is
		 * the last. */
		more = (size_t)n + 16 > room;
		text[kept + (size_t)n] = 0;
		while ((space = strchr(at, ' '))) {
			pid_t pid = (pid_t)strtol(at, NULL, 10);
			if (!coop_launcher_by_pid(pass->keeper, pid) &&
			    !coop_tree_of(pass->keeper)->is_prepared(pass->keeper, pid) &&
			    !coop_registry_by_pid(pass->keeper, pid))
				meet(pass, last, pid);
			at = space + 1;
		}
		kept = strlen(at);
		memmove(text, at, kept);
	} while (more);
	return 0;
}

/* Nobody is reaped meanwhile, so the list only grows. Whoever it names may fork and die before it
 * is looked at; its child then comes to the list's end, once its parent is a zombie. So nobody was
 * missed when a second list is as long as the first. */
int coop_orphans_each(struct coop_keeper *keeper, uint64_t limit_ns, coop_orphans_call call,
		      void *user)
{
	uint64_t began = coop_clock_now();
	struct pass last = {.count = -1};

	do {
		struct pass pass = {.keeper = keeper, .call = call, .user = user};
		int r = make_pass(&pass, &last);
		if (r < 0)
			return r;
		if (pass.count == 0 || pass.count == last.count)
			return 0;
		last = pass;
	} while (coop_clock_now() - began < limit_ns);
	return 1;
}

static void note_owner(void *user, const struct coop_tree_entry *entry)
{
	struct coop_tree *tree = user;

	/* Without memory for it the sweep does not count as complete. */
	if (entry->owner && coop_map_put(&tree->orphaned, entry->owner, tree) < 0)
		tree->swept_whole = false;
}

/* Notes which records have orphans, for all of them at once. */
static void sweep(struct coop_keeper *keeper, uint64_t limit_ns)
{
	struct coop_tree *tree = coop_tree_of(keeper);

	coop_map_clear(&tree->orphaned);
	tree->swept = coop_clock_now();
	tree->swept_whole = true;
	int r = coop_orphans_each(keeper, limit_ns, note_owner, tree);
	if (r == 1)
		tree->swept_whole = false;
	if (r >= 0)
		return;
	if (coop_tree_look(keeper) < 0) {
		tree->swept_whole = false;
		return;
	}
	for (size_t i = 0; i < tree->count; i++) {
		if (tree->entries[i].proc.parent == getpid() && !tree->entries[i].proc.dead)
			note_owner(tree, &tree->entries[i]);
	}
}

bool coop_orphans_left(struct coop_keeper *keeper, struct coop_process *process,
		       enum coop_care care)
{
	const struct coop_tree *tree = coop_tree_of(keeper);
	uint64_t age = coop_clock_now() - tree->swept;

	if (process->child.pid == 0 || process->course.emptied)
		return false;
	/* The first process of a namespace stays as long as somebody is left in it. */
	if (coop_process_boxed(process))
		return !coop_process_gone(process);
	/* Only what lived when the leader died can be left of it, and the topmost of that are
	 * children of ours now. So a sweep after the end that found none settles it for ever; one
	 * that found some is good for a while. */
	if (tree->swept <= process->end.ended || age > SWEEP_AGE_NS ||
	    (care == COOP_THOROUGH && !tree->swept_whole))
		sweep(keeper, care == COOP_THOROUGH ? SWEEP_LONG_NS : SWEEP_SHORT_NS);
	if (coop_map_get(&tree->orphaned, process->n))
		return true;
	if (tree->swept_whole)
		coop_report_emptied(process);
	return false;
}

void coop_orphans_recount(struct coop_keeper *keeper)
{
	COOP_LIST_EACH(coop_registry_all(keeper), link)
	{
		struct coop_process *process = COOP_LIST_ITEM(link, struct coop_process, in.all);
		if (coop_process_told(process))
			(void)coop_orphans_left(keeper, process, COOP_QUICK);
	}
}

bool coop_orphans_may_be_left(struct coop_keeper *keeper, struct coop_process *process)
{
	return coop_orphans_left(keeper, process, COOP_QUICK) ||
	       (process->child.pid && !process->course.emptied);
}

uint64_t coop_orphans_owner_of_dead(struct coop_keeper *keeper, pid_t pid)
{
	struct coop_proc proc;

	return coop_proc_read(pid, &proc) < 0
		       ? 0
		       : coop_orphans_owner(keeper, coop_tree_of(keeper), &proc);
}
