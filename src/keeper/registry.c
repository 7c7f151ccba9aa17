#include "keeper/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/log.h"
#include "base/mem.h"
#include "keeper/follow.h"
#include "keeper/ids.h"
#include "keeper/keeper.h"
#include "keeper/orphans.h"
#include "keeper/process.h"

#define TRIM_BATCH 64
#define TRIM_AFTER_MS 100

int coop_registry_init(struct coop_keeper *keeper, struct coop_err *err)
{
	struct coop_registry *registry = &keeper->registry;

	coop_list_init(&registry->all);
	coop_list_init(&registry->finished);
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

/* Ended records whose descendants still live count like running ones. Looked up only where it can matter. */
static int64_t left_behind(struct coop_keeper *keeper)
{
	const struct coop_registry *registry = &keeper->registry;
	int64_t count = 0;

	if ((int64_t)registry->live + registry->finished_count < keeper->settings.max_running)
		return 0;
	COOP_LIST_EACH(&registry->finished, link)
	{
		count += coop_orphans_left(
			keeper, COOP_LIST_ITEM(link, struct coop_process, in_finished), COOP_QUICK);
	}
	return count;
}

int coop_registry_admit(struct coop_keeper *keeper, struct coop_err *err)
{
	const struct coop_registry *registry = &keeper->registry;

	if (keeper->stopping)
		return coop_err_set(err, COOP_UNAVAILABLE, "the keeper is stopping");
	if (registry->next_n >= registry->reserved_n) {
		reserve_ahead(keeper);
		return coop_err_set(err, COOP_UNAVAILABLE,
				    "no id can be given: the state folder cannot be written to");
	}
	int64_t in_use = (int64_t)registry->live + left_behind(keeper);
	if (in_use < keeper->settings.max_running)
		return 0;
	int r = coop_err_set(err, COOP_REGISTRY_FULL,
			     "%lld processes are running, and %lld is the limit", (long long)in_use,
			     (long long)keeper->settings.max_running);
	coop_err_detail_int(err, "limit", keeper->settings.max_running);
	coop_err_detail_int(err, "in_use", in_use);
	coop_err_detail(err, "scope", "agent");
	return r;
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
	(void)coop_process_ref(process);
	registry->live++;
	reserve_ahead(keeper);
	coop_keeper_check_idle(keeper);
	return 0;
}

int coop_registry_set_pid(struct coop_process *process, pid_t pid)
{
	struct coop_registry *registry = &process->keeper->registry;

	if (process->removed)
		return -ECANCELED;
	/* A number that is given out anew names no session any more, so an older record can lose it. */
	if (coop_map_put(&registry->by_session, (uint64_t)pid, process) < 0)
		return -ENOMEM;
	if (coop_map_put(&registry->by_pid, (uint64_t)pid, process) < 0) {
		(void)coop_map_remove(&registry->by_session, (uint64_t)pid);
		return -ENOMEM;
	}
	process->pid = pid;
	(void)snprintf(process->id, sizeof process->id, "psh-%x-%llu", (unsigned)pid,
		       (unsigned long long)process->n);
	return 0;
}

static void take_out(struct coop_map *map, const struct coop_process *process)
{
	if (process->pid && coop_map_get(map, (uint64_t)process->pid) == process)
		(void)coop_map_remove(map, (uint64_t)process->pid);
}

void coop_registry_clear_pid(struct coop_process *process)
{
	take_out(&process->keeper->registry.by_pid, process);
}

bool coop_registry_has_leader(const struct coop_process *process)
{
	return process->pid > 1 && coop_registry_by_pid(process->keeper, process->pid) == process;
}

struct coop_process *coop_registry_by_pid(const struct coop_keeper *keeper, pid_t pid)
{
	return pid > 0 ? coop_map_get(&keeper->registry.by_pid, (uint64_t)pid) : NULL;
}

void coop_registry_finished(struct coop_process *process)
{
	struct coop_registry *registry = &process->keeper->registry;

	if (process->removed)
		return;
	registry->live--;
	registry->finished_count++;
	process->keeper->untrimmed = true;
	coop_list_add(&registry->finished, &process->in_finished);
}

void coop_registry_shed(struct coop_process *process)
{
	struct coop_registry *registry = &process->keeper->registry;

	take_out(&registry->by_session, process);
	coop_list_remove(&process->in_finished);
	coop_list_remove(&process->in_lease);
	registry->finished_count--;
	registry->receipts++;
	coop_keeper_check_idle(process->keeper);
}

static void drop_receipts(struct coop_keeper *keeper)
{
	struct coop_registry *registry = &keeper->registry;

	if (registry->receipts <= keeper->settings.max_receipts)
		return;
	COOP_LIST_EACH(&registry->all, link)
	{
		struct coop_process *process = COOP_LIST_ITEM(link, struct coop_process, in_all);
		if (registry->receipts <= keeper->settings.max_receipts)
			return;
		if (!process->receipt)
			continue;
		registry->receipts_dropped++;
		coop_registry_remove(process);
	}
}

void coop_registry_trim(struct coop_keeper *keeper)
{
	struct coop_registry *registry = &keeper->registry;

	keeper->untrimmed = false;

	if (registry->finished_count > keeper->settings.max_finished) {
		COOP_LIST_EACH(&registry->finished, link)
		{
			struct coop_process *process =
				COOP_LIST_ITEM(link, struct coop_process, in_finished);
			if (registry->finished_count <= keeper->settings.max_finished)
				break;
			/* Kept: what a reader is reading, what is being killed, and what still owns living processes. */
			if (process->readers || process->kill ||
			    process->lease == COOP_LEASE_PERSISTENT ||
			    coop_orphans_may_be_left(keeper, process))
				continue;
			coop_process_shed(process);
		}
	}
	drop_receipts(keeper);
}

static void on_trim_timer(uv_timer_t *timer)
{
	struct coop_keeper *keeper = timer->data;

	keeper->trim_armed = false;
	coop_registry_trim(keeper);
}

void coop_registry_trim_soon(struct coop_keeper *keeper)
{
	const struct coop_registry *registry = &keeper->registry;
	int64_t surplus = registry->finished_count - keeper->settings.max_finished;

	if (surplus <= 0 || keeper->trim_armed || !keeper->untrimmed)
		return;
	/* Looking who left descendants behind costs the same for one as for many. */
	if (surplus >= TRIM_BATCH) {
		coop_registry_trim(keeper);
		surplus = registry->finished_count - keeper->settings.max_finished;
	}
	keeper->trim_armed = surplus > 0 && keeper->untrimmed;
	if (keeper->trim_armed)
		(void)uv_timer_start(&keeper->trim_timer, on_trim_timer, TRIM_AFTER_MS, 0);
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
	take_out(&registry->by_session, process);
	coop_list_remove(&process->in_all);
	if (process->receipt)
		registry->receipts--;
	else if (process->in_finished.next)
		registry->finished_count--;
	else
		registry->live--;
	coop_list_remove(&process->in_finished);
	coop_list_remove(&process->in_lease);
	/* Whoever reads may have waited for something that cannot come any more. */
	coop_follow_wake(process);
	coop_process_let_go(process);
	coop_stdin_close(process);
	coop_keeper_check_idle(process->keeper);
	coop_process_unref(process);
}

/* The number behind an id: psh-<pid hex>-<n>. 0 if it does not look like one. */
static uint64_t id_number(const char *text)
{
	const char *dash;
	char *end;

	if (strncmp(text, "psh-", 4) != 0 || !(dash = strchr(text + 4, '-')) || dash[1] < '1' ||
	    dash[1] > '9')
		return 0;
	errno = 0;
	uint64_t n = strtoull(dash + 1, &end, 10);
	return errno || *end ? 0 : n;
}

struct candidates {
	struct coop_process *found;
	unsigned count;
	char list[512]; /* JSON array without its brackets */
};

static void add_candidate(struct candidates *candidates, struct coop_process *process)
{
	size_t used = strlen(candidates->list);

	candidates->found = process;
	candidates->count++;
	if (used + strlen(process->id) + 4 < sizeof candidates->list)
		(void)snprintf(candidates->list + used, sizeof candidates->list - used, "%s\"%s\"",
			       used ? "," : "", process->id);
}

static struct coop_process *unambiguous(const struct candidates *candidates, const char *what,
					struct coop_err *err)
{
	char list[sizeof candidates->list + 3];

	if (candidates->count <= 1)
		return candidates->found;
	(void)coop_err_field(err, COOP_INVALID_INPUT, "id", "%u processes %s; use one of their ids",
			     candidates->count, what);
	(void)snprintf(list, sizeof list, "[%s]", candidates->list);
	coop_err_detail_raw(err, "candidates", list);
	return NULL;
}

struct coop_process *coop_registry_find(const struct coop_keeper *keeper, const char *text,
					struct coop_err *err)
{
	uint64_t n = id_number(text);
	struct coop_process *process = n ? coop_map_get(&keeper->registry.by_n, n) : NULL,
			    *latest = NULL;
	struct candidates tagged = {0}, begins = {0};
	size_t size = strlen(text);

	(void)coop_err_set(err, COOP_NO_SUCH_PROCESS, "there is no such process");
	/* Before its pid is known a process is listed as psh-0-N: that name stays good. */
	if (process && (!strcmp(process->id, text) || !strncmp(text, "psh-0-", 6)))
		return process;
	COOP_LIST_EACH(&keeper->registry.all, link)
	{
		process = COOP_LIST_ITEM(link, struct coop_process, in_all);
		if (process->labels.tag && !strcmp(process->labels.tag, text)) {
			latest = process;
			if (coop_process_live(process))
				add_candidate(&tagged, process);
		}
		if (size > 4 && !strncmp(process->id, text, size))
			add_candidate(&begins, process);
	}
	if (tagged.count)
		return unambiguous(&tagged, "have that tag and are running", err);
	return latest ? latest : unambiguous(&begins, "have an id that begins so", err);
}
