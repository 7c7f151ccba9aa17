#include "keeper/freeze.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "keeper/confine.h"
#include "keeper/groups.h"
#include "keeper/job.h"
#include "keeper/keeper.h"
#include "keeper/notices.h"
#include "keeper/ops.h"
#include "keeper/process.h"
#include "keeper/request.h"
#include "keeper/tree.h"

#define MEMBERS_MAX 4096u
#define ROUNDS_MAX 8u /* those that are born while others are moved are met in the next one */

/* The helper thread moves and stops them: the kernel takes milliseconds for each. */
struct freeze {
	struct coop_job job;
	struct coop_process *process; /* a reference */
	const struct coop_cgroups *host;
	struct coop_cgroup group; /* a copy of its own: the record's may go meanwhile */
	bool freeze;
	unsigned rounds;
	pid_t *members;
	size_t count, moved;
};

static void free_freeze(struct freeze *freeze)
{
	coop_process_unref(freeze->process);
	free(freeze->group.path);
	free(freeze->members);
	free(freeze);
}

static void run(struct coop_job *job)
{
	struct freeze *freeze = (struct freeze *)job;
	int r = freeze->rounds > 1
			? 0
			: coop_cgroup_freeze(freeze->host, &freeze->group, freeze->freeze);

	/* Whoever enters a group that is frozen stops. */
	for (; r == 0 && freeze->moved < freeze->count; freeze->moved++) {
		r = coop_cgroup_move(freeze->host, &freeze->group, freeze->members[freeze->moved]);
		r = r == -ESRCH ? 0 : r;
	}
	job->result = r;
}

struct gathering {
	struct freeze *freeze;
	bool failed;
};

static void gather(void *user, const struct coop_tree_entry *entry)
{
	struct gathering *gathering = user;
	struct freeze *freeze = gathering->freeze;

	for (size_t i = 0; i < freeze->count; i++) {
		if (freeze->members[i] == entry->pid)
			return;
	}
	if (freeze->count == MEMBERS_MAX) {
		gathering->failed = true;
		return;
	}
	freeze->members[freeze->count++] = entry->pid;
}

/* Finds those that are not known yet. How many; -errno. */
static int look(struct freeze *freeze)
{
	struct gathering gathering = {.freeze = freeze};
	size_t before = freeze->count;
	int r = coop_tree_look(freeze->process->keeper);

	if (r < 0)
		return r;
	coop_tree_each(freeze->process->keeper, freeze->process, gather, &gathering);
	return gathering.failed ? -E2BIG : (int)(freeze->count - before);
}

static void done(struct coop_job *job);

static void begin(struct freeze *freeze)
{
	freeze->rounds++;
	freeze->process->confine->freezing = freeze->freeze;
	freeze->job.run = run;
	freeze->job.done = done;
	coop_job_begin(freeze->process->keeper, &freeze->job);
}

static void answer(struct coop_request *request, const struct freeze *freeze, int error)
{
	struct coop_process *process = freeze->process;
	struct coop_err err;
	struct coop_jsonw w;

	if (!request)
		return;
	if (error) {
		(void)coop_err_set(&err, COOP_UNAVAILABLE, "%s could not be %s: %s", process->id,
				   freeze->freeze ? "frozen" : "thawed", strerror(error));
		coop_err_detail(&err, "errno", coop_err_errno_name(error));
		coop_request_fail(request, &err);
		return;
	}
	coop_request_result(request, &w);
	coop_jsonw_string(&w, "id", process->id);
	coop_jsonw_bool(&w, "frozen", freeze->freeze);
	coop_request_end(request, &w);
}

static void done(struct coop_job *job)
{
	struct freeze *freeze = (struct freeze *)job;
	struct coop_process *process = freeze->process;
	int fresh = job->result < 0 || !freeze->freeze ? 0 : look(freeze);

	if (fresh > 0 && freeze->rounds < ROUNDS_MAX && coop_process_live(process)) {
		begin(freeze);
		return;
	}
	int error = job->result < 0 ? -job->result : fresh < 0 ? -fresh : fresh ? EBUSY : 0;
	/* Somebody wants it dead meanwhile. */
	if (freeze->freeze && (process->kill || !coop_process_live(process)))
		error = error ? error : ECANCELED;
	process->confine->freezing = false;
	/* Half a frozen tree is of no use to anybody. */
	if (error && freeze->freeze)
		(void)coop_cgroup_freeze(freeze->host, &freeze->group, false);
	process->confine->frozen = freeze->freeze && !error;
	if (!error)
		coop_notices_tell(process, freeze->freeze ? "frozen" : "thawed");
	answer(coop_job_release(job), freeze, error);
	free_freeze(freeze);
}

/* The group that its members are stopped in: its own, if it has limits, else one for this purpose. */
static int choose_group(struct coop_process *process, const struct coop_cgroup **ret,
			struct coop_err *err)
{
	struct coop_confine *confine = process->confine;
	const struct coop_cgroups *host = coop_groups_host(process->keeper);
	static const struct coop_sandbox_limits none;
	char path[64];

	if (confine->grouped && (confine->group.used & 1u << COOP_CG_FREEZER)) {
		*ret = &confine->group;
		return 0;
	}
	*ret = &confine->freezer;
	if (confine->freezer.path)
		return 0;
	(void)snprintf(path, sizeof path, "f-%llu", (unsigned long long)process->n);
	return coop_cgroup_make(host, path, &none, true, &confine->freezer, err);
}

static int refuse(struct coop_process *process, struct coop_err *err)
{
	const struct coop_cgroups *host = coop_groups_host(process->keeper);

	if (!coop_process_live(process) || process->state == COOP_STATE_STARTING || process->kill ||
	    !process->confine)
		return coop_err_set(err, COOP_NOT_RUNNING, "%s is not running", process->id);
	if (host->version[COOP_CG_FREEZER])
		return 0;
	int r = coop_err_set(err, COOP_SANDBOX_UNAVAILABLE, "this host has no freezer for it: %s",
			     host->why[COOP_CG_FREEZER]);
	coop_err_detail(err, "protection", "freezer");
	coop_err_detail(err, "reason", host->why[COOP_CG_FREEZER]);
	return r;
}

static void operate(struct coop_request *request, bool freeze_it)
{
	struct coop_process *process = coop_ops_process(request);
	const struct coop_cgroup *group = NULL;
	struct coop_err err;

	if (!process)
		return;
	int r = refuse(process, &err);
	if (r == 0)
		r = choose_group(process, &group, &err);
	struct freeze *freeze = r < 0 ? NULL : coop_mem_zalloc(sizeof *freeze);
	if (freeze) {
		freeze->members = coop_mem_alloc(MEMBERS_MAX * sizeof(pid_t));
		freeze->group = (struct coop_cgroup){
			.path = coop_mem_strdup(group->path), .fd = -1, .used = group->used};
		freeze->process = coop_process_ref(process);
		freeze->host = coop_groups_host(process->keeper);
		freeze->freeze = freeze_it;
	}
	if (r == 0 && (!freeze || !freeze->members || !freeze->group.path ||
		       (freeze_it && look(freeze) < 0))) {
		if (freeze)
			free_freeze(freeze);
		r = coop_err_no_memory(&err);
	}
	if (r < 0) {
		coop_request_fail(request, &err);
		return;
	}
	freeze->job.request = request;
	begin(freeze);
}

void coop_op_freeze(struct coop_request *request)
{
	operate(request, true);
}

void coop_op_thaw(struct coop_request *request)
{
	operate(request, false);
}

void coop_freeze_release(struct coop_process *process)
{
	struct coop_confine *confine = process->confine;

	/* Also while it is being frozen: whatever has been stopped by then must be let go. */
	if (!confine || (!confine->frozen && !confine->freezing))
		return;
	const struct coop_cgroup *group =
		confine->freezer.path ? &confine->freezer : &confine->group;
	confine->frozen = false;
	(void)coop_cgroup_freeze(coop_groups_host(process->keeper), group, false);
}
