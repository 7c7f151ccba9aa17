#include "keeper/tree/kill.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/io/log.h"
#include "base/io/procfs.h"
#include "base/later.h"
#include "base/mem.h"
#include "keeper/core/keeper.h"
#include "keeper/core/life.h"
#include "keeper/link/request.h"
#include "keeper/process/cause.h"
#include "keeper/process/deadlines.h"
#include "keeper/process/eviction.h"
#include "keeper/process/holder.h"
#include "keeper/process/observer.h"
#include "keeper/process/phase.h"
#include "keeper/process/registry.h"
#include "keeper/tree/leader.h"
#include "keeper/tree/orphans.h"
#include "keeper/tree/party.h"
#include "keeper/tree/tree.h"

#define MS 1000000u
#define KILL_LIMIT_NS 5000000000u /* a kill answers at the latest then */
/* A tree that still moves then is struck as far as it is known, and looked at again. */
#define FREEZE_NS 200000000u
#define CHASE_NS 50000000u

struct coop_kills {
	struct coop_keeper *keeper;
	struct coop_link all;    /* struct coop_kill under way */
	struct coop_later round; /* at least one has something to look at */
};

/* Once: from here on there is no grace to be waited for, only the limit within which the receipt
 * must go out. */
static void begin_killing(struct coop_kill *job)
{
	if (job->killing)
		return;
	job->killing = job->process->course.killing = true;
	COOP_TELL(job->process, on_killing);
	job->process->clock.due[COOP_DUE_GRACE] = 0;
	coop_deadlines_set(job->process, COOP_DUE_KILL_LIMIT, coop_clock_now() + KILL_LIMIT_NS);
	coop_kill_look_again(job->process);
}

/* For the receipt. Without memory it is signalled all the same, only not listed. */
static void note(struct coop_kill *job, pid_t pid)
{
	if (coop_map_get(&job->noted, (uint64_t)pid))
		return;
	if (job->signalled_count == job->signalled_capacity) {
		size_t capacity = job->signalled_capacity ? job->signalled_capacity * 2 : 8;
		pid_t *grown = coop_mem_realloc(job->signalled, capacity * sizeof *grown);
		if (!grown)
			return;
		job->signalled = grown;
		job->signalled_capacity = capacity;
	}
	if (coop_map_put(&job->noted, (uint64_t)pid, job) == 0)
		job->signalled[job->signalled_count++] = pid;
}

static void note_group(void *user, const struct coop_proc *proc)
{
	struct coop_kill *job = user;

	if (proc->group == job->process->child.pid)
		note(job, proc->pid);
}

/* Returns whether it was not stopped before. */
static bool meet(struct coop_kill *job, pid_t pid)
{
	if (coop_map_get(&job->stopped, (uint64_t)pid) ||
	    coop_map_put(&job->stopped, (uint64_t)pid, job) < 0)
		return false;
	note(job, pid);
	return true;
}

/* The signal that asks politely goes to the group, as a terminal's would; a stopped process must be
 * able to act on it. */
static void ask(struct coop_kill *job)
{
	struct coop_process *process = job->process;

	if (!coop_leader_there(process))
		return;
	note(job, process->child.pid);
	if (coop_tree_look_this_turn(process->keeper) == 0)
		coop_tree_each(process->keeper, process, note_group, job);
	(void)coop_leader_signal(process, job->ask, true);
	(void)coop_leader_signal(process, SIGCONT, true);
}

/* It holds the process, whose record may be released while it is being killed. */
static struct coop_kill *new_kill(struct coop_process *process)
{
	struct coop_kill *job = coop_mem_zalloc(sizeof *job);

	if (!job)
		return NULL;
	job->process = coop_process_ref(process);
	job->began = coop_clock_now();
	coop_list_init(&job->requests);
	coop_list_init(&job->members);
	coop_list_add(&coop_kills_of(process->keeper)->all, &job->in_keeper);
	process->kill = job;
	return job;
}

/* With nobody left there is nothing to do, and the receipt says so. Orders that come later join the
 * first: the shorter grace wins. */
static int begin(struct coop_process *process, const struct coop_kill_order *order)
{
	struct coop_kill *job = process->kill;
	uint64_t grace_end = coop_clock_now() + order->grace_ms * MS;

	if (!job && coop_process_reaped(process) &&
	    !coop_orphans_left(process->keeper, process, COOP_THOROUGH))
		return 0;
	bool fresh = !job;
	if (fresh && !(job = new_kill(process)))
		return -ENOMEM;
	if (fresh || order->ask)
		job->ask = order->ask ? order->ask : SIGTERM;
	COOP_TELL(process, on_killing);
	coop_cause_force(process, order->cause, &order->evidence);
	coop_phase_stop_asked(process);
	if (order->grace_ms == 0 || coop_process_reaped(process)) {
		begin_killing(job);
	} else if (!job->killing) {
		if (fresh || !process->clock.due[COOP_DUE_GRACE] ||
		    grace_end < process->clock.due[COOP_DUE_GRACE])
			coop_deadlines_set(process, COOP_DUE_GRACE, grace_end);
		ask(job);
	}
	return 0;
}

int coop_kill_begin(struct coop_process *process, const struct coop_kill_order *order)
{
	/* Deadlines and signals to the keeper kill, too, when there is no memory. */
	bool before = coop_mem_relief(true);
	int r = begin(process, order);

	(void)coop_mem_relief(before);
	return r;
}

void coop_kill_look_again(struct coop_process *process)
{
	if (!process->kill)
		return;
	/* The leader obeyed; what it left behind does not get a grace of its own. */
	if (coop_process_reaped(process) && !process->kill->killing) {
		begin_killing(process->kill);
		return;
	}
	coop_later(coop_laters_of(process->keeper), &coop_kills_of(process->keeper)->round);
}

/* The order came while it was starting, when there was nobody to signal. */
void coop_kill_started(struct coop_process *process)
{
	if (!process->kill)
		return;
	if (!process->kill->killing)
		ask(process->kill);
	coop_kill_look_again(process);
}

void coop_kill_grace_over(struct coop_process *process)
{
	if (process->kill)
		begin_killing(process->kill);
}

/* Taken off the process before anybody is told: who hears of it may kill again. */
static void complete(struct coop_kill *job)
{
	struct coop_process *process = job->process;
	struct coop_kill_receipt receipt = {
		.success = job->survivors == 0,
		.signalled = job->signalled,
		.signalled_count = job->signalled_count,
		.survivors = job->survivors,
		.strays = coop_tree_strays(process->keeper),
		.ms = (coop_clock_now() - job->began) / MS,
	};

	process->kill = NULL;
	process->course.killing = false;
	process->course.survivors = job->survivors;
	coop_eviction_look(process->keeper);
	coop_list_remove(&job->in_keeper);
	coop_deadlines_set(process, COOP_DUE_KILL_LIMIT, 0);
	coop_deadlines_set(process, COOP_DUE_GRACE, 0);
	if (job->survivors)
		coop_log(COOP_LOG_WARN, "kill left survivors id=%s survivors=%u", process->id,
			 job->survivors);
	coop_phase_at(process, COOP_AT_FREED);
	while (!coop_list_empty(&job->requests)) {
		struct coop_request *request =
			COOP_LIST_ITEM(job->requests.next, struct coop_request, in_process);
		coop_list_remove(&request->in_process);
		request->on_killed(request, &receipt);
	}
	coop_party_left(&job->members, job->survivors);
	free(job->signalled);
	coop_map_clear(&job->noted);
	coop_map_clear(&job->stopped);
	free(job);
	coop_life_look(process->keeper);
	coop_process_unref(process);
}

/* Trees with a first process are not struck one by one: the kernel does that. */
static struct coop_kill *job_of(const struct coop_keeper *keeper,
				const struct coop_tree_entry *entry)
{
	const struct coop_process *process =
		entry->owner ? coop_registry_by_number(keeper, entry->owner) : NULL;

	if (!process || entry->proc.dead || coop_process_boxed(process))
		return NULL;
	return process->kill && process->kill->killing ? process->kill : NULL;
}

/* Stops every member that was not seen before. Returns whether there were any: stopped ones cannot
 * fork, so a look that finds nobody new has found all. */
static bool freeze(const struct coop_keeper *keeper)
{
	bool fresh = false;

	for (size_t i = 0; i < coop_tree_of(keeper)->count; i++) {
		const struct coop_tree_entry *entry = &coop_tree_of(keeper)->entries[i];
		struct coop_kill *job = job_of(keeper, entry);
		if (job && meet(job, entry->proc.pid)) {
			fresh = true;
			(void)coop_proc_signal(&entry->proc, SIGSTOP);
		}
	}
	return fresh;
}

struct chase {
	const struct coop_keeper *keeper;
	bool fresh;
};

static void stop_orphan(void *user, const struct coop_tree_entry *entry)
{
	struct chase *chase = user;
	struct coop_kill *job = job_of(chase->keeper, entry);

	if (job && meet(job, entry->proc.pid)) {
		chase->fresh = true;
		(void)kill(entry->proc.pid, SIGSTOP); /* our unreaped child */
	}
}

/* A process that forks, leaves its parent and lets it die, over and over, is gone before a whole
 * look is over. But whoever it is at the moment is a child of ours, and that list is read, and the
 * process stopped, in the time of a few system calls. */
static bool chase_orphans(struct coop_keeper *keeper)
{
	struct chase chase = {.keeper = keeper};

	/* Time up: somebody is still moving. Without the list, looks have to do. */
	return coop_orphans_each(keeper, CHASE_NS, stop_orphan, &chase) == 1 || chase.fresh;
}

/* Where the freeze was certain nobody can fork between two signals; else the next round finds
 * who did. */
static void strike(const struct coop_keeper *keeper)
{
	for (size_t i = 0; i < coop_tree_of(keeper)->count; i++) {
		const struct coop_tree_entry *entry = &coop_tree_of(keeper)->entries[i];
		struct coop_kill *job = job_of(keeper, entry);
		if (!job)
			continue;
		job->survivors++;
		(void)coop_proc_signal(&entry->proc, SIGKILL);
	}
}

/* Stops everybody who is to die, until a look finds nobody new or time is up. Returns whether that
 * is certain; -errno where /proc could not be read. */
static int freeze_all(struct coop_keeper *keeper)
{
	uint64_t began = coop_clock_now();
	bool fresh;
	int r;

	do {
		r = coop_tree_look(keeper);
		fresh = r == 0 && freeze(keeper);
		fresh = chase_orphans(keeper) || fresh;
	} while (fresh && coop_clock_now() - began < FREEZE_NS);
	return r < 0 ? r : !fresh;
}

static void note_member(void *user, const struct coop_proc *proc)
{
	note(user, proc->pid);
}

/* The first process of the namespace dies, and the kernel ends all others before it can be
 * reaped. */
static void end_namespace(struct coop_kill *job)
{
	struct coop_process *process = job->process;

	if (!job->killing || job->struck || !coop_registry_has_root(process))
		return;
	job->struck = true;
	if (process->child.pid && !coop_process_reaped(process))
		note(job, process->child.pid);
	if (coop_tree_look_this_turn(process->keeper) == 0)
		coop_tree_each(process->keeper, process, note_member, job);
	(void)kill(process->child.root, SIGKILL); /* our unreaped child */
}

/* Kills of trees without a namespace, all at once. Whether that is certain; -errno as
 * freeze_all. */
static int kill_trees(struct coop_keeper *keeper)
{
	bool any = false;

	COOP_LIST_EACH(&coop_kills_of(keeper)->all, link)
	{
		struct coop_kill *job = COOP_LIST_ITEM(link, struct coop_kill, in_keeper);
		if (coop_process_boxed(job->process)) {
			end_namespace(job);
			job->survivors = !coop_process_gone(job->process);
		} else {
			any = any || job->killing;
			job->survivors = 0;
		}
	}
	if (!any)
		return 1;
	int certain = freeze_all(keeper);
	strike(keeper);
	return certain;
}

/* Goes on with every kill that has something to look at; they share their looks at /proc. */
static void go_round(struct coop_keeper *keeper)
{
	int all_certain = kill_trees(keeper);
	COOP_LIST_EACH(&coop_kills_of(keeper)->all, link)
	{
		struct coop_kill *job = COOP_LIST_ITEM(link, struct coop_kill, in_keeper);
		struct coop_process *process = job->process;
		int certain = coop_process_boxed(process) ? 1 : all_certain;
		if (!job->killing)
			continue;
		if (certain == 0)
			coop_kill_look_again(process);
		/* For want of memory or descriptors: again soon. */
		if (certain < 0)
			coop_deadlines_retry(process);
		/* With on_exit kill the end waits until nobody is left; the answer waits for the
		 * end. */
		job->nobody_left = certain > 0 && job->survivors == 0;
		if (job->nobody_left)
			coop_tree_unsweep(
				keeper); /* what was found there before is not there any more */
		process->course.killing = !job->nobody_left;
		coop_phase_at(process, COOP_AT_FREED);
		/* Whoever reads slowly what it wrote does not keep it alive. */
		if (job->nobody_left &&
		    (coop_process_told(process) || coop_holders_waited_for(process)))
			complete(job);
	}
}

static void on_round(struct coop_later *item)
{
	struct coop_kills *kills = COOP_LATER_OWNER(item, struct coop_kills, round);
	/* Looking for what is to end takes memory, and gives more back. */
	bool before = coop_mem_relief(true);

	go_round(kills->keeper);
	(void)coop_mem_relief(before);
}

struct coop_kills *coop_kills_new(struct coop_keeper *keeper)
{
	struct coop_kills *kills = coop_mem_zalloc(sizeof *kills);

	if (!kills)
		return NULL;
	kills->keeper = keeper;
	kills->round.run = on_round;
	coop_list_init(&kills->all);
	return kills;
}

bool coop_kills_any(const struct coop_keeper *keeper)
{
	return !coop_list_empty(&coop_kills_of(keeper)->all);
}

/* The receipt goes out with what is known: whoever asked does not wait for a process that cannot
 * die. */
void coop_kill_limit_reached(struct coop_process *process)
{
	struct coop_kill *job = process->kill;

	if (!job)
		return;
	if (process->spawn) {
		/* There is nobody to kill yet. */
		coop_deadlines_set(process, COOP_DUE_KILL_LIMIT, coop_clock_now() + KILL_LIMIT_NS);
		return;
	}
	if (coop_process_gone(process) && coop_process_boxed(process))
		job->survivors = 0;
	else if (coop_tree_look(process->keeper) == 0)
		job->survivors = (unsigned)coop_tree_count(process->keeper, process);
	else if (!job->survivors)
		job->survivors = 1; /* nothing was proved */
	complete(job);
}

void coop_kill_await(struct coop_process *process, struct coop_request *request)
{
	static const struct coop_kill_receipt nothing = {.success = true};

	if (process->kill)
		coop_list_add(&process->kill->requests, &request->in_process);
	else
		request->on_killed(request, &nothing);
}

/* Who does not answer any more. A zombie counts as dead, and its pid is not free yet. */
static bool gone(pid_t pid)
{
	return kill(pid, 0) < 0 && errno == ESRCH;
}

void coop_receipt_write(const struct coop_kill_receipt *receipt, struct coop_jsonw *w)
{
	static const char *const lists[] = {"signalled", "killed"};

	coop_jsonw_bool(w, "success", receipt->success);
	for (size_t list = 0; list < 2; list++) {
		coop_jsonw_array(w, lists[list]);
		for (size_t i = 0; i < receipt->signalled_count; i++) {
			if (list == 0 || !receipt->survivors || gone(receipt->signalled[i]))
				coop_jsonw_int(w, NULL, receipt->signalled[i]);
		}
		coop_jsonw_array_end(w);
	}
	coop_jsonw_uint(w, "survivors", receipt->survivors);
	coop_jsonw_uint(w, "strays", receipt->strays);
	coop_jsonw_uint(w, "ms", receipt->ms);
}
