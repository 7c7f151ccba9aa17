#include "keeper/process/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/io/log.h"
#include "base/mem.h"
#include "keeper/core/ids.h"
#include "keeper/core/keeper.h"
#include "keeper/core/life.h"
#include "keeper/output/stdin.h"
#include "keeper/owner/agent.h"
#include "keeper/process/completions.h"
#include "keeper/process/deadlines.h"
#include "keeper/process/eviction.h"
#include "keeper/process/holder.h"
#include "keeper/process/observer.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/process/quota.h"

struct coop_registry {
	struct coop_map by_n, by_pid;
	/* By the leader's pid, which is the session's and the group's number too, for as long as
	 * the record is whole. */
	struct coop_map by_session;
	struct coop_link all;       /* start order, receipts included */
	struct coop_link unsettled; /* ended records that may have left descendants; few */
	unsigned unsettled_count;
	unsigned live, finished_count;
	uint64_t told_count;         /* ends that have been told, ever */
	uint64_t next_n, reserved_n; /* ids below reserved_n are taken on disk */
	bool reserving;
};

struct coop_registry *coop_registry_new(void)
{
	struct coop_registry *registry = coop_mem_zalloc(sizeof *registry);

	if (!registry)
		return NULL;
	coop_list_init(&registry->all);
	coop_list_init(&registry->unsettled);
	registry->next_n = 1;
	/* A private keeper has no state folder, and its numbers need to be unique among its own
	 * processes alone. */
	registry->reserved_n = UINT64_MAX;
	return registry;
}

int coop_registry_open(struct coop_keeper *keeper, struct coop_err *err)
{
	struct coop_registry *registry = coop_registry_of(keeper);

	if (!*coop_place_of(keeper)->state_dir)
		return 0;
	int r = coop_ids_open(coop_place_of(keeper)->state_dir, &registry->next_n);
	registry->reserved_n = registry->next_n + COOP_IDS_BLOCK;
	if (r == -EBADMSG)
		return coop_err_set(err, COOP_UNAVAILABLE,
				    "%.400s/next-id is damaged; move it away to start anew",
				    coop_place_of(keeper)->state_dir);
	if (r < 0)
		return coop_err_set(err, COOP_UNAVAILABLE,
				    "the state folder %.300s cannot be used: %s",
				    coop_place_of(keeper)->state_dir, strerror(-r));
	return 0;
}

/* The counter's file was lost, or is older than the database, which knows higher numbers. An id
 * that was used once must never name another process. */
int coop_registry_skip(struct coop_keeper *keeper, uint64_t last, struct coop_err *err)
{
	struct coop_registry *registry = coop_registry_of(keeper);
	uint64_t limit = last + 1 + COOP_IDS_BLOCK;
	int r = coop_ids_reserve(coop_place_of(keeper)->state_dir, limit);

	if (r < 0)
		return coop_err_set(err, COOP_UNAVAILABLE,
				    "the state folder %.300s cannot be used: %s",
				    coop_place_of(keeper)->state_dir, strerror(-r));
	registry->next_n = last + 1;
	registry->reserved_n = limit;
	return 0;
}

/* Maps after the records: removing one looks itself up in them. */
void coop_registry_clear(struct coop_keeper *keeper)
{
	COOP_LIST_EACH(&coop_registry_of(keeper)->all, link)
	{
		coop_registry_remove(COOP_LIST_ITEM(link, struct coop_process, in.all));
	}
	coop_map_clear(&coop_registry_of(keeper)->by_n);
	coop_map_clear(&coop_registry_of(keeper)->by_pid);
	coop_map_clear(&coop_registry_of(keeper)->by_session);
}

struct coop_link *coop_registry_all(const struct coop_keeper *keeper)
{
	return &coop_registry_of(keeper)->all;
}

struct coop_link *coop_registry_unsettled(const struct coop_keeper *keeper)
{
	return &coop_registry_of(keeper)->unsettled;
}

unsigned coop_registry_unsettled_count(const struct coop_keeper *keeper)
{
	return coop_registry_of(keeper)->unsettled_count;
}

uint64_t coop_registry_told(const struct coop_keeper *keeper)
{
	return coop_registry_of(keeper)->told_count;
}

uint64_t coop_registry_next(const struct coop_keeper *keeper)
{
	return coop_registry_of(keeper)->next_n;
}

unsigned coop_registry_live(const struct coop_keeper *keeper)
{
	return coop_registry_of(keeper)->live;
}

unsigned coop_registry_finished_count(const struct coop_keeper *keeper)
{
	return coop_registry_of(keeper)->finished_count;
}

void coop_registry_count(struct coop_keeper *keeper, int live, int finished)
{
	coop_registry_of(keeper)->live += (unsigned)live;
	coop_registry_of(keeper)->finished_count += (unsigned)finished;
}

struct coop_process *coop_registry_by_number(const struct coop_keeper *keeper, uint64_t n)
{
	return n ? coop_map_get(&coop_registry_of(keeper)->by_n, n) : NULL;
}

struct coop_process *coop_registry_by_session(const struct coop_keeper *keeper, pid_t session)
{
	return coop_map_get(&coop_registry_of(keeper)->by_session, (uint64_t)session);
}

/* Reserving the next block of ids, on the helper thread. */
struct reservation {
	uv_work_t work;
	struct coop_keeper *keeper;
	uint64_t limit;
	int result;
};

static void reserve_work(uv_work_t *work)
{
	struct reservation *job = work->data;

	job->result = coop_ids_reserve(coop_place_of(job->keeper)->state_dir, job->limit);
}

static void reserved(uv_work_t *work, int status)
{
	struct reservation *job = work->data;
	struct coop_registry *registry = coop_registry_of(job->keeper);

	(void)status;
	coop_life_disk_end(job->keeper);
	registry->reserving = false;
	if (job->result == 0)
		registry->reserved_n = job->limit;
	else
		coop_log(COOP_LOG_ERROR, "ids cannot be reserved on disk error=%s",
			 coop_err_errno_name(-job->result));
	free(job);
}

/* Begun when half a block is left, so that the disk has all that time. */
static void reserve_ahead(struct coop_keeper *keeper)
{
	struct coop_registry *registry = coop_registry_of(keeper);

	if (registry->reserving || registry->reserved_n - registry->next_n > COOP_IDS_BLOCK / 2)
		return;
	struct reservation *job = coop_mem_zalloc(sizeof *job);
	if (!job)
		return;
	*job = (struct reservation){.keeper = keeper,
				    .limit = registry->reserved_n + COOP_IDS_BLOCK};
	job->work.data = job;
	registry->reserving = true;
	coop_life_disk_begin(keeper);
	(void)uv_queue_work(coop_loop_of(keeper), &job->work, reserve_work,
			    reserved); /* fails only without a work function */
}

/* Asked before anything else is checked, so that a keeper that is leaving, or cannot write, says so
 * and not something of the arguments. */
int coop_registry_admit(struct coop_keeper *keeper, struct coop_err *err)
{
	const struct coop_registry *registry = coop_registry_of(keeper);

	if (coop_life_stopping(keeper)) {
		int r = coop_err_set(err, COOP_UNAVAILABLE, "the keeper is stopping");
		coop_err_detail(err, "reason", "stopping");
		return r;
	}
	if (registry->next_n < registry->reserved_n)
		return 0;
	reserve_ahead(keeper);
	return coop_err_set(err, COOP_UNAVAILABLE,
			    "no id can be given: the state folder cannot be written to");
}

/* Listed as psh-0-N until the kernel has given it a pid: it can be found, and killed, from here
 * on. */
int coop_registry_add(struct coop_process *process)
{
	struct coop_keeper *keeper = process->keeper;
	struct coop_registry *registry = coop_registry_of(keeper);

	if (coop_map_put(&registry->by_n, registry->next_n, process) < 0)
		return -ENOMEM;
	process->n = registry->next_n++;
	(void)snprintf(process->id, sizeof process->id, "psh-0-%llu",
		       (unsigned long long)process->n);
	coop_list_add(&registry->all, &process->in.all);
	coop_list_add(&process->agent->principal->processes, &process->in.principal);
	(void)coop_process_ref(process);
	coop_quota_count(process, 1, 0);
	coop_phase_at(process, COOP_AT_ADDED);
	reserve_ahead(keeper);
	coop_life_look(keeper);
	return 0;
}

/* Of an earlier keeper: it counts for no quota, nobody is told, and its number was never this
 * keeper's to give. */
int coop_registry_add_receipt(struct coop_process *process)
{
	struct coop_registry *registry = coop_registry_of(process->keeper);

	if (coop_map_put(&registry->by_n, process->n, process) < 0)
		return -ENOMEM;
	coop_list_add(&registry->all, &process->in.all);
	coop_list_add(&process->agent->principal->processes, &process->in.principal);
	(void)coop_process_ref(process);
	coop_eviction_receipt(process);
	return 0;
}

int coop_registry_set_root(struct coop_process *process, pid_t pid)
{
	struct coop_registry *registry = coop_registry_of(process->keeper);

	if (coop_process_removed(process))
		return -ECANCELED;
	/* A number that is given out anew names no session any more, so an older record can lose
	 * it. */
	if (coop_map_put(&registry->by_session, (uint64_t)pid, process) < 0)
		return -ENOMEM;
	if (coop_map_put(&registry->by_pid, (uint64_t)pid, process) < 0) {
		(void)coop_map_remove(&registry->by_session, (uint64_t)pid);
		return -ENOMEM;
	}
	process->child.root = pid;
	process->child.root_lives = true;
	return 0;
}

/* The id is final from here on; the number alone finds it, so the name that it had before stays
 * good. */
void coop_registry_name(struct coop_process *process, pid_t pid)
{
	process->child.pid = pid;
	(void)snprintf(process->id, sizeof process->id, "psh-%x-%llu", (unsigned)pid,
		       (unsigned long long)process->n);
}

/* The pid may be another's by now: only an entry that is this one's own goes. */
static void take_out(struct coop_map *map, const struct coop_process *process)
{
	if (process->child.root && coop_map_get(map, (uint64_t)process->child.root) == process)
		(void)coop_map_remove(map, (uint64_t)process->child.root);
}

/* A slot that did not fit: as if it had never been this process's. */
void coop_registry_unset_root(struct coop_process *process)
{
	take_out(&coop_registry_of(process->keeper)->by_pid, process);
	take_out(&coop_registry_of(process->keeper)->by_session, process);
	process->child.root = 0;
	process->child.root_lives = false;
}

/* The session's number stays, as descendants may still carry it; the pid is free for others. */
void coop_registry_clear_pid(struct coop_process *process)
{
	process->child.root_lives = false;
	take_out(&coop_registry_of(process->keeper)->by_pid, process);
}

/* Whether the pid may be signalled: our unreaped child's cannot be a stranger's. */
bool coop_registry_has_root(const struct coop_process *process)
{
	return process->child.root > 1 &&
	       coop_registry_by_pid(process->keeper, process->child.root) == process;
}

struct coop_process *coop_registry_by_pid(const struct coop_keeper *keeper, pid_t pid)
{
	return pid > 0 ? coop_map_get(&coop_registry_of(keeper)->by_pid, (uint64_t)pid) : NULL;
}

void coop_registry_finished(struct coop_process *process)
{
	struct coop_registry *registry = coop_registry_of(process->keeper);

	process->times.told_number = ++registry->told_count;
	if (coop_process_removed(process))
		return;
	coop_quota_count(process, -1, 1);
	/* Somebody of its tree may live on. Few records are in that state, so the list is short and
	 * looked at often. */
	if (!process->course.emptied) {
		coop_list_add(&registry->unsettled, &process->in.unsettled);
		registry->unsettled_count++;
	}
	coop_eviction_add(process);
}

void coop_registry_settled(struct coop_process *process)
{
	if (!process->in.unsettled.next)
		return;
	coop_list_remove(&process->in.unsettled);
	coop_registry_of(process->keeper)->unsettled_count--;
}

/* No longer among the finished, and in no group that ends together. */
static void leave(struct coop_process *process)
{
	take_out(&coop_registry_of(process->keeper)->by_session, process);
	coop_registry_settled(process);
	coop_list_remove(&process->origin.in_lease);
	coop_list_remove(&process->in.session);
	coop_eviction_remove(process);
	coop_quota_charge(process, 0);
}

void coop_registry_shed(struct coop_process *process)
{
	coop_quota_count(process, 0, -1);
	leave(process);
	coop_eviction_receipt(process);
	coop_life_look(process->keeper);
}

/* It counts no more for anybody. */
static void uncount(struct coop_process *process)
{
	bool told = coop_process_told(process);

	if (!coop_process_receipt(process))
		coop_quota_count(process, told ? 0 : -1, told ? -1 : 0);
}

/* Out of all maps and lists first, then the moment: observers must not find what is going. */
void coop_registry_remove(struct coop_process *process)
{
	struct coop_registry *registry = coop_registry_of(process->keeper);

	if (coop_process_removed(process))
		return;
	coop_deadlines_set(process, COOP_DUE_RETENTION, 0);
	(void)coop_map_remove(&registry->by_n, process->n);
	coop_registry_clear_pid(process);
	coop_list_remove(&process->in.all);
	coop_list_remove(&process->in.principal);
	coop_completions_forget(process);
	coop_eviction_unclaim(process);
	uncount(process);
	leave(process);
	coop_phase_at(process, COOP_AT_REMOVED);
	/* Whoever reads may have waited for something that cannot come any more. */
	coop_observer_news(process);
	coop_holders_clear(process);
	coop_process_let_go(process);
	coop_stdin_close(&process->output);
	coop_life_look(process->keeper);
	/* The registry's own reference: whoever still reads has one more. */
	coop_process_unref(process);
}
