#include "keeper/confine/freeze.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io/procfs.h"
#include "base/json/jsonw.h"
#include "base/mem.h"
#include "interface/err.h"
#include "keeper/confine/confine.h"
#include "keeper/confine/groups.h"
#include "keeper/core/keeper.h"
#include "keeper/link/job.h"
#include "keeper/link/request.h"
#include "keeper/owner/agent.h"
#include "keeper/process/lookup.h"
#include "keeper/process/observer.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/tree/tree.h"
#include "sandbox/cgroup/cgroup.h"

#define MEMBERS_MAX 4096u
#define ROUNDS_MAX 8u /* those that are born while others are moved are met in the next one */

struct member {
	pid_t pid;
	uint64_t start_time;
};

/* The helper thread moves and stops them: the kernel takes milliseconds for each. */
struct freeze {
	struct coop_job job;
	struct coop_process *process; /* a reference */
	const struct coop_cgroups *host;
	struct coop_cgroup group; /* a copy of its own: the record's may go meanwhile */
	bool freeze;
	unsigned rounds;
	struct member *members;
	size_t count, moved;
};

static void free_freeze(struct freeze *freeze)
{
	coop_process_unref(freeze->process);
	free(freeze->group.path);
	free(freeze->members);
	free(freeze);
}

/* Whether the pid still is the one's that was seen. */
static bool is_there(const struct member *member)
{
	return coop_proc_is_there(member->pid, member->start_time);
}

/* A stranger who got the pid a moment ago: he goes to where the keeper itself came from. */
static int put_back(const struct freeze *freeze, pid_t pid)
{
	char path[PATH_MAX], text[16];
	int size = snprintf(text, sizeof text, "%d", pid);

	(void)snprintf(path, sizeof path, "%s/../cgroup.procs",
		       freeze->host->base[COOP_CG_FREEZER]);
	COOP_AUTO_FD int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, (size_t)size) < 0)
		return errno == ESRCH ? 0 : -errno;
	return 0;
}

/* Groups know pids only. One that has died since the look may be somebody else's by now. */
static int move(const struct freeze *freeze, const struct member *member)
{
	if (!is_there(member))
		return 0;
	int r = coop_cgroup_move(freeze->host, &freeze->group, member->pid);
	if (r == 0 && !is_there(member))
		r = put_back(freeze, member->pid);
	return r == -ESRCH ? 0 : r;
}

static bool mark_path(const char *state_dir, char *ret, size_t size)
{
	int n = snprintf(ret, size, "%s/frozen", state_dir);

	return *state_dir && n > 0 && (size_t)n < size;
}

/* In version 1 nobody dies while frozen. Should this keeper not live to let them go, the file says
 * where they are. Without room on the disk they have to wait until the next one looks for control
 * groups. */
static void mark(const struct freeze *freeze)
{
	const struct coop_cgroups *host = freeze->host;
	const char *base = host->base[COOP_CG_FREEZER];
	char path[PATH_MAX];

	if (host->version[COOP_CG_FREEZER] != 1 ||
	    !mark_path(coop_place_of(freeze->job.keeper)->state_dir, path, sizeof path))
		return;
	COOP_AUTO_FD int fd =
		open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0)
		(void)!write(fd, base, strlen(base));
}

static void run(struct coop_job *job)
{
	struct freeze *freeze = (struct freeze *)job;
	int r = 0;

	if (freeze->rounds == 1) {
		if (freeze->freeze)
			mark(freeze);
		r = coop_cgroup_freeze(freeze->host, &freeze->group, freeze->freeze);
	}
	/* Whoever enters a group that is frozen stops, but not at once. */
	for (; r == 0 && freeze->moved < freeze->count; freeze->moved++)
		r = move(freeze, &freeze->members[freeze->moved]);
	if (r == 0 && freeze->freeze)
		r = coop_cgroup_freeze(freeze->host, &freeze->group, true);
	job->result = r;
}

struct gathering {
	struct freeze *freeze;
	bool failed;
};

static void gather(void *user, const struct coop_proc *proc)
{
	struct gathering *gathering = user;
	struct freeze *freeze = gathering->freeze;

	for (size_t i = 0; i < freeze->count; i++) {
		if (freeze->members[i].pid == proc->pid &&
		    freeze->members[i].start_time == proc->start_time)
			return;
	}
	if (freeze->count == MEMBERS_MAX) {
		gathering->failed = true;
		return;
	}
	freeze->members[freeze->count++] =
		(struct member){.pid = proc->pid, .start_time = proc->start_time};
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

/* Marked before the work begins: a kill that comes meanwhile thaws what is stopped by then. */
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

/* Members that were born meanwhile are moved in another round, a bounded number of times. */
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
	bool was = process->confine->frozen;
	process->confine->frozen = freeze->freeze && !error;
	if (!error && was != freeze->freeze)
		COOP_TELL(process, on_event, freeze->freeze ? "frozen" : "thawed");
	answer(coop_job_release(job), freeze, error);
	free_freeze(freeze);
}

/* The group that its members are stopped in: its own, if it has limits, else one for this
 * purpose. */
static int choose_group(struct coop_process *process, const struct coop_cgroup **ret,
			struct coop_err *err)
{
	struct coop_confine *confine = process->confine;
	const struct coop_cgroups *host = coop_groups_host(process->keeper);
	static const struct coop_sandbox_limits none;
	char path[1100];

	if (confine->grouped && (confine->group.used & 1u << COOP_CG_FREEZER)) {
		*ret = &confine->group;
		return 0;
	}
	*ret = &confine->freezer;
	if (confine->freezer.path)
		return 0;
	/* In version 2 who is moved leaves the group that it was in: its agent's limits must hold
	 * on. */
	bool inside = host->version[COOP_CG_FREEZER] == 2 && process->agent->group.path;
	(void)snprintf(path, sizeof path, "%s%sf-%llu", inside ? process->agent->group.path : "",
		       inside ? "/" : "", (unsigned long long)process->n);
	return coop_cgroup_make(host, path, &none, true, &confine->freezer, err);
}

static int thaw_folder(const char *path, const struct stat *st, int type, struct FTW *place)
{
	char state[PATH_MAX];

	(void)st;
	(void)place;
	if (type != FTW_D ||
	    (size_t)snprintf(state, sizeof state, "%s/freezer.state", path) >= sizeof state)
		return 0;
	COOP_AUTO_FD int fd = open(state, O_WRONLY | O_CLOEXEC);
	if (fd >= 0)
		(void)!write(fd, "THAWED", 6);
	return 0;
}

void coop_freeze_let_go(const char *state_dir)
{
	char path[PATH_MAX], base[PATH_MAX];

	if (!mark_path(state_dir, path, sizeof path))
		return;
	COOP_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n = fd < 0 ? -1 : read(fd, base, sizeof base - 1);
	if (n < 0)
		return;
	base[n] = 0;
	if (base[0] == '/')
		(void)nftw(base, thaw_folder, 8, FTW_PHYS);
	(void)unlink(path);
}

/* Of one that is being killed nothing is stopped any more. */
static int refuse(struct coop_process *process, struct coop_err *err)
{
	const struct coop_cgroups *host = coop_groups_host(process->keeper);

	if (!coop_process_live(process) || process->course.phase <= COOP_PHASE_STARTING ||
	    process->kill || !process->confine)
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
	struct coop_process *process = coop_lookup_named(request);
	const struct coop_cgroup *group = NULL;
	struct coop_err err;

	if (!process)
		return;
	int r = refuse(process, &err);
	if (r == 0)
		r = choose_group(process, &group, &err);
	struct freeze *freeze = r < 0 ? NULL : coop_mem_zalloc(sizeof *freeze);
	if (freeze) {
		freeze->members = coop_mem_alloc(MEMBERS_MAX * sizeof *freeze->members);
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
