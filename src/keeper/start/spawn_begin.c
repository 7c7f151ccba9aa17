#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "interface/err.h"
#include "keeper/confine/confine.h"
#include "keeper/core/keeper.h"
#include "keeper/host/views.h"
#include "keeper/launch/launcher.h"
#include "keeper/link/request.h"
#include "keeper/output/stdin.h"
#include "keeper/process/process.h"
#include "keeper/process/wire.h"
#include "keeper/start/decide.h"
#include "keeper/start/plans.h"
#include "keeper/start/slots.h"
#include "keeper/start/spawn.h"
#include "keeper/start/spawn_failure.h"
#include "keeper/start/spawn_fds.h"
#include "keeper/start/spawn_slot.h"

/* The command goes on without its caller; what it becomes is in its record. */
static void drop_request(struct coop_request *request)
{
	struct coop_process *process = request->state;

	if (process->spawn)
		process->spawn->request = NULL;
}

int coop_spawn_submit(struct coop_spawn *spawn)
{
	struct coop_plan *plan = (struct coop_plan *)(void *)coop_buf_front(&spawn->launch.message);
	int r = 0;

	/* A sandbox that is made for one process carries its mark from the beginning. */
	plan->mark = coop_place_of(spawn->process->keeper)->mark | spawn->process->n;
	spawn->wire = coop_wire_new(spawn->process->keeper, &spawn->fds[COOP_PLAN_FD_CHANNEL], &r);
	if (!spawn->wire)
		return -r;
	coop_spawn_listen(spawn, spawn->wire);
	r = coop_buf_size(&spawn->rest) ? coop_spawn_send_rest(spawn, spawn->wire) : 0;
	if (r == 0)
		coop_launcher_submit(spawn->launcher, &spawn->launch);
	return r;
}

/* The trees of the view: one duplicate each, so that another try can send them again. */
static int add_trees(struct coop_spawn *spawn)
{
	const struct coop_confine *confine = spawn->process->confine;

	for (uint32_t i = 0; i < confine->start->tree_count; i++) {
		int fd = fcntl(confine->start->trees[i], F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			return -errno;
		spawn->fds[COOP_PLAN_FD_COUNT + i] = fd;
	}
	return 0;
}

static int feed_stdin(struct coop_process *process, const struct coop_spawn_command *command)
{
	int r = 0;

	if (command->stdin_size)
		r = coop_stdin_write(&process->output, command->stdin_bytes, command->stdin_size,
				     NULL, NULL);
	if (r == 0 && command->stdin_pipe && command->stdin_bytes && !command->keep_stdin_open)
		r = coop_stdin_end(&process->output, NULL, NULL);
	return r;
}

/* What the command itself needs: its descriptors, and the plan, or in two steps the rest of it. */
static int open_command(struct coop_spawn *spawn, const struct coop_spawn_command *command,
			bool in_steps)
{
	const struct coop_confine *confine = spawn->process->confine;
	int r = coop_spawn_fds_open(spawn, command->stdin_pipe);

	if (r == 0) {
		spawn->fds[COOP_PLAN_FD_CWD] = fcntl(command->cwd_fd, F_DUPFD_CLOEXEC, 3);
		r = spawn->fds[COOP_PLAN_FD_CWD] < 0 ? -errno : 0;
	}
	if (r == 0)
		r = add_trees(spawn);
	if (r == 0 && (confine->flags & COOP_PLAN_CGROUP_FD)) {
		spawn->fds[COOP_PLAN_FD_CGROUP] = fcntl(confine->group.fd, F_DUPFD_CLOEXEC, 3);
		r = spawn->fds[COOP_PLAN_FD_CGROUP] < 0 ? -errno : 0;
	}
	if (r == 0 && command->program_fd >= 0) {
		spawn->fds[COOP_PLAN_FD_PROGRAM] = fcntl(command->program_fd, F_DUPFD_CLOEXEC, 3);
		r = spawn->fds[COOP_PLAN_FD_PROGRAM] < 0 ? -errno : 0;
	}
	if (r == 0)
		r = coop_plans_make(spawn->process, in_steps ? COOP_PLAN_GO : COOP_PLAN_SPAWN,
				    command, in_steps ? &spawn->rest : &spawn->launch.message,
				    &spawn->fds[COOP_PLAN_FD_BODY]);
	return r < 0 ? r : feed_stdin(spawn->process, command);
}

/* Placeholders and descriptors; refused with the reason. */
static int prepare(struct coop_spawn *spawn, const struct coop_spawn_command *command,
		   bool in_steps, struct coop_err *err)
{
	int r = coop_confine_hold(spawn->process, err);

	if (r < 0)
		return r;
	r = open_command(spawn, command, in_steps);
	return r < 0 ? coop_spawn_failed_at(err, "pipe", -r) : 0;
}

/* All in one message. */
static int begin_whole(struct coop_spawn *spawn, const struct coop_spawn_command *command,
		       struct coop_err *err)
{
	int r = prepare(spawn, command, false, err);

	if (r < 0)
		return r;
	r = coop_spawn_submit(spawn);
	return r < 0 ? coop_spawn_failed_at(err, "pipe", -r) : 0;
}

/* In the slot, or if that has died, in a sandbox made now. */
static int enter(struct coop_spawn *spawn, const struct coop_spawn_command *command,
		 struct coop_wire *wire, pid_t pid, struct coop_err *err)
{
	int r = prepare(spawn, command, true, err);

	if (r < 0) {
		coop_wire_close(wire);
		return r;
	}
	if (coop_spawn_enter_slot(spawn, wire, pid) == 0)
		return 0;
	r = coop_spawn_submit(spawn);
	return r < 0 ? coop_spawn_failed_at(err, "pipe", -r) : 0;
}

/* The sandbox is being made on another core while the rest of this goes on here. */
static int make_and_enter(struct coop_spawn *spawn, const struct coop_spawn_command *command,
			  struct coop_err *err)
{
	struct coop_process *process = spawn->process;
	int r = coop_spawn_submit(spawn);

	if (r < 0)
		return coop_spawn_failed_at(err, "pipe", -r);
	/* Refused at once, and answered. */
	if (process->spawn != spawn)
		return 0;
	r = prepare(spawn, command, true, err);
	if (r == 0) {
		r = coop_spawn_send_rest(spawn, spawn->wire);
		/* It failed by now, or never was: child or launcher will say why. */
		if (r == -EPIPE || r == -ECONNRESET)
			return 0;
		if (r < 0)
			(void)coop_spawn_failed_at(err, "pipe", -r);
	}
	if (r < 0)
		coop_spawn_abandon(spawn, err);
	return 0;
}

/* A sandbox, prepared or made now, then the command in it. */
static int begin_in_steps(struct coop_spawn *spawn, const struct coop_spawn_command *command,
			  struct coop_err *err)
{
	struct coop_wire *wire = NULL;
	pid_t pid = 0;
	int r = coop_spawn_plan_sandbox(spawn);

	/* What all commands of a kind have in common mostly is small: the masks of the home may not
	 * be. */
	if (r == -E2BIG) {
		coop_buf_clear(&spawn->launch.message);
		return begin_whole(spawn, command, err);
	}
	if (r < 0)
		return coop_spawn_failed_at(err, "pipe", -r);
	return coop_slots_take(spawn->process, &spawn->launch.message, &wire, &pid)
		       ? enter(spawn, command, wire, pid, err)
		       : make_and_enter(spawn, command, err);
}

/* It counts for a launcher that stays, which does not go while it is counted. */
static struct coop_spawn *new_spawn(struct coop_process *process, struct coop_request *request)
{
	struct coop_spawn *spawn = coop_mem_zalloc(sizeof *spawn);

	if (!spawn)
		return NULL;
	spawn->launch.calls = &coop_spawn_launch;
	spawn->launcher = coop_launcher_get(process->keeper, &process->confine->launcher);
	if (!spawn->launcher) {
		free(spawn);
		return NULL;
	}
	spawn->stays = spawn->launcher->class.stays;
	spawn->launcher->spawns += spawn->stays;
	spawn->process = coop_process_ref(process);
	spawn->request = request;
	for (size_t i = 0; i < COOP_LAUNCH_FDS_MAX; i++)
		spawn->fds[i] = -1;
	process->spawn = spawn;
	return spawn;
}

int coop_spawn_start(struct coop_process *process, const struct coop_spawn_command *command,
		     struct coop_request *request, struct coop_err *err)
{
	struct coop_spawn *spawn = new_spawn(process, request);

	if (!spawn)
		return coop_err_no_memory(err);
	spawn->reply = command->reply;
	/* It may end before this returns. */
	(void)coop_process_ref(process);
	process->confine->launched = true;
	/* Without a view of its own a command finds our socket, so that we must look who comes. */
	if (process->confine->policy.profile != COOP_PROFILE_FULL &&
	    process->confine->kind != COOP_CONFINE_NAMESPACES)
		coop_views_loosen(process->keeper);
	request->state = process;
	request->on_drop = drop_request;
	int r = coop_slots_fit(process) ? begin_in_steps(spawn, command, err)
					: begin_whole(spawn, command, err);
	if (r < 0) {
		request->on_drop = NULL;
		coop_spawn_release(spawn);
	}
	coop_process_unref(process);
	return r;
}
