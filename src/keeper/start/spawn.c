#include "keeper/start/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "keeper/confine/confine.h"
#include "keeper/confine/net.h"
#include "keeper/confine/watch.h"
#include "keeper/core/keeper.h"
#include "keeper/core/meters.h"
#include "keeper/launch/launcher.h"
#include "keeper/link/connection.h"
#include "keeper/link/request.h"
#include "keeper/owner/agent.h"
#include "keeper/process/deadlines.h"
#include "keeper/process/note.h"
#include "keeper/process/observer.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/process/registry.h"
#include "keeper/process/report.h"
#include "keeper/process/wire.h"
#include "keeper/start/plans.h"
#include "keeper/start/slots.h"
#include "keeper/start/spawn_failure.h"
#include "keeper/start/spawn_fds.h"
#include "keeper/start/spawn_slot.h"
#include "keeper/tree/kill.h"
#include "keeper/tree/tree.h"

#define ATTEMPTS_MAX 3 /* plans lost with a dying launcher are sent again */

void coop_spawn_release(struct coop_spawn *spawn)
{
	spawn->process->spawn = NULL;
	coop_deadlines_set(spawn->process, COOP_DUE_START, 0);
	/* One for this process alone may be gone by now. */
	if (spawn->stays)
		spawn->launcher->spawns--;
	coop_spawn_fds_close(spawn);
	coop_buf_clear(&spawn->launch.message);
	coop_buf_clear(&spawn->rest);
	coop_wire_close(spawn->wire);
	coop_process_unref(spawn->process);
	free(spawn->refusal);
	free(spawn);
}

static void answered(struct coop_launch *launch, pid_t pid);
static void refused(struct coop_launch *launch, int error, enum coop_plan_step step);
static void unanswered(struct coop_launch *launch);

static struct coop_spawn *spawn_of(struct coop_launch *launch)
{
	return COOP_LIST_ITEM(launch, struct coop_spawn, launch);
}

static void fail_spawn(struct coop_spawn *spawn)
{
	struct coop_process *process = spawn->process;
	struct coop_request *request = spawn->request;
	struct coop_err err;
	int error = spawn->reply_error ? spawn->reply_error : spawn->failure.error;

	if (spawn->refusal)
		err = *spawn->refusal;
	else
		coop_spawn_explain(spawn, &err);
	coop_meters_of(process->keeper)->start_failures++;
	if (error == EAGAIN || error == ENOMEM)
		coop_slots_pressed(process->keeper);
	/* A network that cannot be entered is of no use to the next either. */
	if (spawn->reply_error && spawn->reply_step == COOP_STEP_NETWORK && process->confine->net &&
	    process->confine->net->home)
		coop_net_orphan(process->confine->net->home);
	/* Only what a user could have meant as a command leaves a record; want of resources does
	 * not. */
	bool keep =
		process->terms.record_failure && !spawn->refusal && !spawn->reply_error &&
		error != E2BIG &&
		(spawn->failure.step == COOP_STEP_EXEC ||
		 /* A record would tell an agent more of the folder than the refusal does. */
		 (spawn->failure.step == COOP_STEP_CHDIR && coop_agent_is_main(process->agent)));
	/* The child is reaped as somebody unknown: it never was a process of ours. */
	coop_registry_clear_pid(process);
	if (!*process->id)
		coop_registry_name(process, spawn->cloned_pid ? spawn->cloned_pid : 0);
	process->terms.record_failure = keep;
	coop_spawn_release(spawn);
	coop_confine_over(process);
	coop_note_add(process, "%s", err.message);
	coop_report_failed(process, error == ENOENT ? 127 : 126);
	if (keep)
		coop_err_detail(&err, "id", process->id);
	else
		coop_registry_remove(process);
	if (request) {
		request->on_drop = NULL;
		coop_request_fail(request, &err);
	}
}

/* The pieces that outlive the spawn are taken out of it first: releasing it frees the rest. What
 * happened meanwhile (a kill, an end) is told after the start. */
static void succeed(struct coop_spawn *spawn)
{
	struct coop_process *process = spawn->process;
	struct coop_request *request = spawn->request;
	coop_spawn_replies spawn_reply = spawn->reply;
	bool ended = spawn->ended, root_gone = spawn->root_gone, alone = spawn->alone;
	int wait_status = spawn->wait_status;
	struct rusage usage = spawn->usage;

	coop_registry_name(process, spawn->program_pid ? spawn->program_pid : process->child.root);
	/* One that has ended by now has nothing more to say, and nobody would close it before the
	 * record goes. */
	if (coop_process_boxed(process) && !spawn->wire->over) {
		coop_report_listen(process, spawn->wire);
		spawn->wire = NULL;
	}
	coop_spawn_release(spawn);
	coop_confine_started(process);
	coop_report_executed(process);
	if (request) {
		request->on_drop = NULL;
		spawn_reply(request, process);
	}
	coop_kill_started(process);
	if (ended)
		coop_report_program_ended(process, wait_status, &usage,
					  alone && coop_process_boxed(process));
	if (root_gone)
		coop_report_root_reaped(process);
}

/* A slot did not fit after all: the launcher does it from the beginning. */
static void begin_anew(struct coop_spawn *spawn)
{
	int r = coop_spawn_leave_slot(spawn);
	if (r == 0)
		r = coop_spawn_submit(spawn);
	if (r < 0)
		refused(&spawn->launch, -r, COOP_STEP_CLONE);
}

/* Both words are in: the launcher's (or it is dead) and the child's. */
static void conclude(struct coop_spawn *spawn)
{
	struct coop_process *process = coop_process_ref(spawn->process);

	if (!spawn->answered || !spawn->heard) {
		coop_process_unref(process);
		return;
	}
	if (spawn->failure.event && process->confine->pooled &&
	    (spawn->failure.step == COOP_STEP_MOUNTS || spawn->stood))
		begin_anew(spawn);
	else if (spawn->refusal || spawn->reply_error || spawn->failure.event)
		fail_spawn(spawn);
	else
		succeed(spawn);
	coop_process_unref(process);
}

/* Sends the plan once more, through the launcher that was started meanwhile. 0: the old spawn is
 * gone; -errno: it is still the caller's. */
static int try_again(struct coop_spawn *spawn)
{
	struct coop_process *process = spawn->process;
	struct coop_spawn *next =
		spawn->attempts + 1 < ATTEMPTS_MAX ? coop_mem_alloc(sizeof *next) : NULL;

	if (!next)
		return -EIO;
	*next = (struct coop_spawn){
		.process = coop_process_ref(process),
		.request = spawn->request,
		.reply = spawn->reply,
		.launcher = spawn->launcher,
		.launch = {.calls = &coop_spawn_launch, .message = spawn->launch.message},
		.rest = spawn->rest,
		.attempts = spawn->attempts + 1,
		.stays = spawn->stays,
	};
	next->launcher->spawns += next->stays;
	memcpy(next->fds, spawn->fds, sizeof next->fds);
	for (size_t i = 0; i < COOP_LAUNCH_FDS_MAX; i++)
		spawn->fds[i] = -1;
	spawn->launch.message = spawn->rest = (struct coop_buf){0};
	coop_spawn_release(spawn);
	process->spawn = next;
	int r = coop_spawn_submit(next);
	if (r < 0)
		refused(&next->launch, -r, COOP_STEP_CLONE);
	return 0;
}

/* The launcher died after it had cloned: the child's own word stands in for its reply. */
static void adopt(struct coop_spawn *spawn)
{
	spawn->launch.unanswered = false;
	answered(&spawn->launch, spawn->cloned_pid);
}

/* The launcher died with this plan, and the child's silence says that it was never cloned: it is
 * sent again. */
static void repeat(struct coop_spawn *spawn)
{
	coop_launcher_settled(spawn->launcher, &spawn->launch);
	if (try_again(spawn) == 0)
		return;
	spawn->launch.sequence = 0; /* nobody waits for its answer any more */
	refused(&spawn->launch, EIO, COOP_STEP_CLONE);
}

/* A launcher that has died without an answer leaves the decision to the child's own words. */
static void go_on(struct coop_spawn *spawn)
{
	if (spawn->launch.unanswered)
		unanswered(&spawn->launch);
	else
		conclude(spawn);
}

/* Kept: an end is told after the start, however fast the program was. */
static void take_end(const struct coop_plan_status *message, struct coop_spawn *spawn)
{
	spawn->ended = true;
	spawn->alone = message->alone;
	spawn->process->child.unreachable = message->unreachable;
	spawn->wait_status = message->wait_status;
	coop_wire_usage(message, &spawn->usage);
}

static void on_message(struct coop_wire *wire, const struct coop_plan_status *message, pid_t sender)
{
	struct coop_spawn *spawn = wire->user;

	switch ((enum coop_plan_event)message->event) {
	case COOP_PLAN_CLONED:
		spawn->cloned_pid = sender;
		break;
	case COOP_PLAN_FAILED:
		spawn->failure = *message;
		spawn->heard = true;
		break;
	case COOP_PLAN_EXECUTED:
		spawn->program_pid = sender;
		spawn->heard = true;
		break;
	case COOP_PLAN_EXITED:
		take_end(message, spawn);
		break;
	case COOP_PLAN_STOPPED:
		coop_phase_stopped(spawn->process, true);
		break;
	case COOP_PLAN_CONTINUED:
		coop_phase_stopped(spawn->process, false);
		break;
	case COOP_PLAN_READY:
		break;
	}
	go_on(spawn);
}

/* Without a first process of its own the channel ends when the program is executed. With one, it
 * has died before that: because it was killed, or else something went wrong that it could not
 * tell. */
static void on_end(struct coop_wire *wire)
{
	struct coop_spawn *spawn = wire->user;
	const struct coop_process *process = spawn->process;

	if (!spawn->heard && coop_process_boxed(process) && !process->kill && spawn->cloned_pid)
		spawn->failure = (struct coop_plan_status){
			.event = COOP_PLAN_FAILED, .step = COOP_STEP_INIT, .error = ECHILD};
	spawn->heard = true;
	go_on(spawn);
}

/* The network may have been made since the plan was put together: another process of the session
 * was faster. */
static size_t sending(struct coop_launch *launch, int ret_fds[COOP_LAUNCH_FDS_MAX])
{
	struct coop_spawn *spawn = spawn_of(launch);
	struct coop_plan *plan = (struct coop_plan *)(void *)coop_buf_front(&spawn->launch.message);
	const struct coop_net *net = spawn->process->confine->net;

	if (net && !(plan->flags & COOP_PLAN_NET_FD)) {
		plan->flags &= ~(uint32_t)COOP_PLAN_NET_NEW;
		spawn->fds[COOP_PLAN_FD_NET] =
			net->fd < 0 ? -1 : fcntl(net->fd, F_DUPFD_CLOEXEC, 3);
		plan->flags |=
			spawn->fds[COOP_PLAN_FD_NET] < 0 ? COOP_PLAN_NET_NEW : COOP_PLAN_NET_FD;
	}
	return coop_spawn_plan_fds(spawn, ret_fds);
}

static void net_made(struct coop_launch *launch, int fd)
{
	struct coop_spawn *spawn = spawn_of(launch);
	struct coop_net *net = spawn->process->confine->net;

	if (net && net->fd < 0)
		net->fd = fd;
	else
		(void)close(fd);
}

static void sent(struct coop_launch *launch)
{
	struct coop_spawn *spawn = spawn_of(launch);
	/* From here on only the child holds this end: it closes when the child executes or dies.
	 * The other ends are kept for another try until the launcher has answered. */
	(void)close(spawn->fds[COOP_PLAN_FD_CHANNEL]);
	spawn->fds[COOP_PLAN_FD_CHANNEL] = -1;
}

/* It has said all that it will. One that sits in a control group for this process alone is done. */
static void settle_launcher(struct coop_spawn *spawn)
{
	if (spawn->launch.sequence)
		coop_launcher_settled(spawn->launcher, &spawn->launch);
	if (spawn->launcher->class.cell && !spawn->launcher->class.stays)
		coop_launcher_retire(spawn->launcher);
}

static void answered(struct coop_launch *launch, pid_t pid)
{
	struct coop_spawn *spawn = spawn_of(launch);
	struct coop_process *process = spawn->process;

	if (coop_registry_set_root(process, pid) < 0) {
		(void)kill(pid, SIGKILL); /* it cannot be kept; our unreaped child */
		refused(&spawn->launch, ENOMEM, COOP_STEP_CLONE);
		return;
	}
	coop_tree_forget(process->keeper, pid);
	coop_spawn_fds_close(spawn);
	spawn->answered = true;
	coop_spawn_watch(spawn);
	settle_launcher(spawn);
	conclude(spawn);
}

static void refused(struct coop_launch *launch, int error, enum coop_plan_step step)
{
	struct coop_spawn *spawn = spawn_of(launch);
	coop_spawn_fds_close(spawn);
	spawn->answered = true;
	spawn->reply_error = error;
	spawn->reply_step = step;
	spawn->heard = true;
	settle_launcher(spawn);
	conclude(spawn);
}

/* In this order: a child that exists is adopted, one that failed is told of, and only where it is
 * certain that nothing was cloned the plan is sent again. */
static void unanswered(struct coop_launch *launch)
{
	struct coop_spawn *spawn = spawn_of(launch);
	spawn->launch.unanswered = true;
	if (spawn->cloned_pid)
		adopt(spawn);
	else if (spawn->refusal || spawn->failure.event)
		refused(&spawn->launch, EIO, COOP_STEP_CLONE);
	else if (spawn->heard)
		repeat(spawn);
}

void coop_spawn_abandon(struct coop_spawn *spawn, const struct coop_err *err)
{
	spawn->refusal = coop_mem_alloc(sizeof *spawn->refusal);
	if (spawn->refusal)
		*spawn->refusal = *err;
	else
		spawn->failure = (struct coop_plan_status){
			.event = COOP_PLAN_FAILED, .step = COOP_STEP_BODY, .error = ENOMEM};
	coop_wire_close(spawn->wire);
	spawn->wire = NULL;
	spawn->heard = true;
	/* Not sent yet: nobody will answer. */
	if (!spawn->launch.sequence) {
		coop_list_remove(&spawn->launch.in_launcher);
		refused(&spawn->launch, EIO, COOP_STEP_CLONE);
	}
}

void coop_spawn_root_gone(struct coop_spawn *spawn, int wait_status, const struct rusage *usage)
{
	/* What it had said before is still on the wire; it says more than its death. */
	struct coop_process *process = coop_process_ref(spawn->process);

	const struct coop_wire *wire = spawn->wire;

	if (wire)
		coop_wire_drain(spawn->wire);
	/* It has been answered by that, or begun anew with another first process. */
	if (process->spawn != spawn || spawn->wire != wire) {
		coop_process_unref(process);
		return;
	}
	spawn->root_gone = true;
	if (!spawn->ended) {
		spawn->ended = true;
		spawn->alone = true;
		spawn->wait_status = wait_status;
		spawn->usage = *usage;
	}
	coop_process_unref(process);
}

void coop_spawn_listen(struct coop_spawn *spawn, struct coop_wire *wire)
{
	wire->user = spawn;
	wire->on_message = on_message;
	wire->on_end = on_end;
}

static void on_due(struct coop_process *process, enum coop_deadline which)
{
	if (which == COOP_DUE_START && process->spawn)
		coop_spawn_due(process->spawn);
}

/* A good moment to prepare another sandbox. */
static void on_empty(struct coop_process *process)
{
	if (coop_process_boxed(process))
		coop_slots_rest(process->keeper);
}

const struct coop_launch_calls coop_spawn_launch = {
	.sending = sending,
	.sent = sent,
	.answered = answered,
	.refused = refused,
	.net_made = net_made,
	.unanswered = unanswered,
};

const struct coop_observer coop_start_observer = {.on_empty = on_empty, .on_due = on_due};
