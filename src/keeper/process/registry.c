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
#include "keeper/ops/follow.h"
#include "keeper/output/stdin.h"
#include "keeper/process/completions.h"
#include "keeper/process/deadlines.h"
#include "keeper/process/eviction.h"
#include "keeper/process/holder.h"
#include "keeper/process/process.h"
#include "keeper/process/quota.h"
#include "keeper/tree/tree.h"

int coop_registry_init(struct coop_keeper *keeper, struct coop_err *err)
{
	struct coop_registry *registry = &keeper->registry;

	coop_list_init(&registry->all);
	coop_list_init(&registry->unsettled);
	registry->next_n = 1;
	registry->reserved_n = UINT64_MAX;
	if (!*keeper->state_dir)
		return 0;
	int r = coop_ids_open(keeper->state_dir, &registry->next_n);
	registry->reserved_n = registry->next_n + COOP_IDS_BLOCK;
	if (r == -EBADMSG)
		return coop_err_set(err, COOP_UNAVAILABLE,
				    "%.400s/next-id is damaged; move it away to start anew",
				    keeper->state_dir);
	if (r < 0)
		return coop_err_set(err, COOP_UNAVAILABLE,
				    "the state folder %.300s cannot be used: %s", keeper->state_dir,
				    strerror(-r));
	return 0;
}

int coop_registry_skip(struct coop_keeper *keeper, uint64_t last, struct coop_err *err)
{
	struct coop_registry *registry = &keeper->registry;
	uint64_t limit = last + 1 + COOP_IDS_BLOCK;
	int r = coop_ids_reserve(keeper->state_dir, limit);

	if (r < 0)
		return coop_err_set(err, COOP_UNAVAILABLE,
				    "the state folder %.300s cannot be used: %s", keeper->state_dir,
				    strerror(-r));
	registry->next_n = last + 1;
	registry->reserved_n = limit;
	return 0;
}

void coop_registry_free(struct coop_keeper *keeper)
{
	COOP_LIST_EACH(&keeper->registry.all, link)
	{
		coop_registry_remove(COOP_LIST_ITEM(link, struct coop_process, in_all));
	}
	coop_map_clear(&keeper->registry.by_n);
	coop_map_clear(&keeper->registry.by_pid);
	coop_map_clear(&keeper->registry.by_session);
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

	job->result = coop_ids_reserve(job->keeper->state_dir, job->limit);
}

static void reserved(uv_work_t *work, int status)
{
	struct reservation *job = work->data;
	struct coop_registry *registry = &job->keeper->registry;

	(void)status;
	job->keeper->disk_jobs--;
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
	struct coop_registry *registry = &keeper->registry;

	if (registry->reserving || registry->reserved_n - registry->next_n > COOP_IDS_BLOCK / 2)
		return;
	struct reservation *job = coop_mem_zalloc(sizeof *job);
	if (!job)
		return;
	*job = (struct reservation){.keeper = keeper,
				    .limit = registry->reserved_n + COOP_IDS_BLOCK};
	job->work.data = job;
	registry->reserving = true;
	keeper->disk_jobs++;
	(void)uv_queue_work(&keeper->loop, &job->work, reserve_work,
			    reserved); /* fails only without a work function */
}

int coop_registry_admit(struct coop_keeper *keeper, struct coop_err *err)
{
	const struct coop_registry *registry = &keeper->registry;

	if (keeper->stopping)
		return coop_err_set(err, COOP_UNAVAILABLE, "the keeper is stopping");
	if (registry->next_n < registry->reserved_n)
		return 0;
	reserve_ahead(keeper);
	return coop_err_set(err, COOP_UNAVAILABLE,
			    "no id can be given: the state folder cannot be written to");
}

int coop_registry_add(struct coop_process *process)
{
	struct coop_keeper *keeper = process->keeper;
	struct coop_registry *registry = &keeper->registry;

	if (coop_map_put(&registry->by_n, registry->next_n, process) < 0)
		return -ENOMEM;
	process->n = registry->next_n++;
	(void)snprintf(process->id, sizeof process->id, "psh-0-%llu",
		       (unsigned long long)process->n);
	coop_list_add(&registry->all, &process->in_all);
	coop_list_add(&process->agent->principal->processes, &process->in_principal);
	(void)coop_process_ref(process);
	coop_quota_count(process, 1, 0);
	reserve_ahead(keeper);
	coop_keeper_check_idle(keeper);
	return 0;
}

int coop_registry_add_receipt(struct coop_process *process)
{
	struct coop_registry *registry = &process->keeper->registry;

	if (coop_map_put(&registry->by_n, process->n, process) < 0)
		return -ENOMEM;
	coop_list_add(&registry->all, &process->in_all);
	coop_list_add(&process->agent->principal->processes, &process->in_principal);
	(void)coop_process_ref(process);
	coop_eviction_receipt(process);
	return 0;
}

int coop_registry_set_root(struct coop_process *process, pid_t pid)
{
	struct coop_registry *registry = &process->keeper->registry;

	if (process->removed)
		return -ECANCELED;
	/* A number that is given out anew names no session any more, so an older record can lose
	 * it. */
	if (coop_map_put(&registry->by_session, (uint64_t)pid, process) < 0)
		return -ENOMEM;
	if (coop_map_put(&registry->by_pid, (uint64_t)pid, process) < 0) {
		(void)coop_map_remove(&registry->by_session, (uint64_t)pid);
		return -ENOMEM;
	}
	process->root_pid = pid;
	coop_tree_forget(process->keeper, pid);
	return 0;
}

void coop_registry_name(struct coop_process *process, pid_t pid)
{
	process->pid = pid;
	(void)snprintf(process->id, sizeof process->id, "psh-%x-%llu", (unsigned)pid,
		       (unsigned long long)process->n);
}

static void take_out(struct coop_map *map, const struct coop_process *process)
{
	if (process->root_pid && coop_map_get(map, (uint64_t)process->root_pid) == process)
		(void)coop_map_remove(map, (uint64_t)process->root_pid);
}

void coop_registry_unset_root(struct coop_process *process)
{
	take_out(&process->keeper->registry.by_pid, process);
	take_out(&process->keeper->registry.by_session, process);
	process->root_pid = 0;
}

void coop_registry_clear_pid(struct coop_process *process)
{
	take_out(&process->keeper->registry.by_pid, process);
}

bool coop_registry_has_root(const struct coop_process *process)
{
	return process->root_pid > 1 &&
	       coop_registry_by_pid(process->keeper, process->root_pid) == process;
}

struct coop_process *coop_registry_by_pid(const struct coop_keeper *keeper, pid_t pid)
{
	return pid > 0 ? coop_map_get(&keeper->registry.by_pid, (uint64_t)pid) : NULL;
}

void coop_registry_finished(struct coop_process *process)
{
	struct coop_registry *registry = &process->keeper->registry;

	process->told_number = ++registry->told_count;
	if (process->removed)
		return;
	coop_quota_count(process, -1, 1);
	if (!process->childless) {
		coop_list_add(&registry->unsettled, &process->in_unsettled);
		registry->unsettled_count++;
	}
	coop_eviction_add(process);
}

void coop_registry_settled(struct coop_process *process)
{
	if (!process->in_unsettled.next)
		return;
	coop_list_remove(&process->in_unsettled);
	process->keeper->registry.unsettled_count--;
}

/* No longer among the finished, and in no group that ends together. */
static void leave(struct coop_process *process)
{
	take_out(&process->keeper->registry.by_session, process);
	coop_registry_settled(process);
	coop_list_remove(&process->origin.in_lease);
	coop_list_remove(&process->in_session);
	coop_eviction_remove(process);
	coop_quota_charge(process, 0);
}

void coop_registry_shed(struct coop_process *process)
{
	coop_quota_count(process, 0, -1);
	leave(process);
	coop_eviction_receipt(process);
	coop_keeper_check_idle(process->keeper);
}

void coop_registry_remove(struct coop_process *process)
{
	struct coop_registry *registry = &process->keeper->registry;

	if (process->removed)
		return;
	process->removed = true;
	coop_deadlines_set(process, COOP_DUE_RETENTION, 0);
	(void)coop_map_remove(&registry->by_n, process->n);
	coop_registry_clear_pid(process);
	coop_list_remove(&process->in_all);
	coop_list_remove(&process->in_principal);
	coop_completions_forget(process);
	coop_eviction_unclaim(process);
	if (!process->receipt)
		coop_quota_count(process, process->told ? 0 : -1, process->told ? -1 : 0);
	leave(process);
	/* Whoever reads may have waited for something that cannot come any more. */
	coop_follow_wake(process);
	coop_holders_clear(process);
	coop_process_let_go(process);
	coop_stdin_close(process);
	coop_keeper_check_idle(process->keeper);
	coop_process_unref(process);
}
