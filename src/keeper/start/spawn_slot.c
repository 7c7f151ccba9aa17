#include "keeper/start/spawn_slot.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io/fdpass.h"
#include "base/io/log.h"
#include "base/io/procfs.h"
#include "keeper/confine/confine.h"
#include "keeper/process/deadlines.h"
#include "keeper/process/process.h"
#include "keeper/process/registry.h"
#include "keeper/process/wire.h"
#include "keeper/start/plans.h"
#include "keeper/start/spawn.h"
#include "keeper/start/spawn_fds.h"
#include "keeper/tree/tree.h"

/* How often a start that takes long is looked at: mostly it is over long before. */
#define LOOK_NS 2000000000u

int coop_spawn_plan_sandbox(struct coop_spawn *spawn)
{
	int body_fd = -1;
	int r = coop_plans_make(spawn->process, COOP_PLAN_FILL, NULL, &spawn->launch.message,
				&body_fd);

	if (body_fd < 0)
		return r;
	/* What all commands of a kind have in common is small. */
	(void)close(body_fd);
	return -E2BIG;
}

int coop_spawn_send_rest(const struct coop_spawn *spawn, const struct coop_wire *wire)
{
	int fds[COOP_LAUNCH_FDS_MAX];
	size_t count = coop_spawn_rest_fds(spawn, fds);

	return coop_fdpass_send(wire->fd, coop_buf_front(&spawn->rest), coop_buf_size(&spawn->rest),
				fds, count);
}

int coop_spawn_enter_slot(struct coop_spawn *spawn, struct coop_wire *wire, pid_t pid)
{
	struct coop_process *process = spawn->process;

	coop_spawn_listen(spawn, wire);
	int r = coop_registry_set_root(process, pid);

	if (r == 0)
		coop_tree_forget(process->keeper, pid);
	if (r == 0)
		r = coop_spawn_send_rest(spawn, wire);
	if (r < 0) {
		coop_registry_unset_root(process);
		coop_wire_close(wire);
		return r;
	}
	spawn->wire = wire;
	spawn->cloned_pid = pid;
	spawn->answered = true;
	process->confine->pooled = true;
	coop_spawn_watch(spawn);
	return 0;
}

/* The slot has mounted those that it was given, and they have gone with it. */
static int renew_trees(struct coop_spawn *spawn)
{
	const struct coop_process *process = spawn->process;

	for (uint32_t i = 0; i < process->confine->start->tree_count; i++) {
		int *fd = &spawn->fds[COOP_PLAN_FD_COUNT + i];
		int tree = coop_confine_tree_anew(process, i);
		if (tree < 0)
			return tree;
		(void)close(*fd);
		*fd = tree;
	}
	return 0;
}

int coop_spawn_leave_slot(struct coop_spawn *spawn)
{
	struct coop_process *process = spawn->process;

	process->confine->pooled = false;
	coop_registry_unset_root(process); /* it leaves by itself, and is reaped as anybody */
	coop_wire_close(spawn->wire);
	spawn->wire = NULL;
	spawn->cloned_pid = 0;
	spawn->answered = spawn->heard = spawn->ended = spawn->root_gone = spawn->stood = false;
	spawn->failure = (struct coop_plan_status){0};
	return renew_trees(spawn);
}

/* Only the parked process can stand still unnoticed: without a first process the kernel tells us of
 * every stop. */
void coop_spawn_watch(struct coop_spawn *spawn)
{
	if (coop_process_boxed(spawn->process))
		coop_deadlines_set(spawn->process, COOP_DUE_START, coop_clock_now() + LOOK_NS);
}

void coop_spawn_stands(struct coop_spawn *spawn)
{
	struct coop_process *process = spawn->process;

	if (spawn->heard || spawn->stood || process->kill || !coop_registry_has_root(process))
		return;
	coop_log(COOP_LOG_WARN,
		 "a sandbox was stopped before its command began: it is ended pid=%d",
		 process->child.root);
	spawn->stood = true;
	(void)kill(process->child.root, SIGKILL); /* our unreaped child */
}

static bool is_stopped(pid_t pid)
{
	struct coop_proc proc;

	return pid > 1 && coop_proc_read(pid, &proc) == 0 &&
	       (proc.state == 'T' || proc.state == 't');
}

/* The one that is to become the program: the only child that a first process has by then. */
static pid_t parked(pid_t first)
{
	char file[48], text[64];

	(void)snprintf(file, sizeof file, "task/%d/children", first);
	return coop_proc_read_file(first, file, text, sizeof text) > 0
		       ? (pid_t)strtol(text, NULL, 10)
		       : 0;
}

void coop_spawn_due(struct coop_spawn *spawn)
{
	struct coop_process *process = coop_process_ref(spawn->process);

	/* The loop may be late: what has been said counts. */
	if (spawn->wire)
		coop_wire_drain(spawn->wire);
	if (process->spawn == spawn && coop_registry_has_root(process)) {
		if (is_stopped(process->child.root) || is_stopped(parked(process->child.root)))
			coop_spawn_stands(spawn);
		coop_spawn_watch(spawn);
	}
	coop_process_unref(process);
}
