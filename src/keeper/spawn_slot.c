#include "keeper/spawn_slot.h"

#include <errno.h>
#include <unistd.h>

#include "base/fdpass.h"
#include "keeper/confine.h"
#include "keeper/keeper.h"
#include "keeper/plans.h"
#include "keeper/process.h"
#include "keeper/spawn.h"
#include "keeper/spawn_fds.h"
#include "keeper/wire.h"

int coop_spawn_plan_sandbox(struct coop_spawn *spawn)
{
	int body_fd = -1;
	int r = coop_plans_make(spawn->process, COOP_PLAN_FILL, NULL, &spawn->message, &body_fd);

	if (body_fd < 0)
		return r;
	/* What all commands of a kind have in common is small. */
	(void)close(body_fd);
	return -E2BIG;
}

int coop_spawn_send_rest(const struct coop_spawn *spawn, const struct coop_wire *wire)
{
	int fds[COOP_SPAWN_FDS_MAX];
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
	return 0;
}

void coop_spawn_leave_slot(struct coop_spawn *spawn)
{
	struct coop_process *process = spawn->process;

	process->confine->pooled = false;
	coop_registry_unset_root(process); /* it leaves by itself, and is reaped as anybody */
	coop_wire_close(spawn->wire);
	spawn->wire = NULL;
	spawn->cloned_pid = 0;
	spawn->answered = spawn->heard = spawn->ended = spawn->root_gone = false;
	spawn->failure = (struct coop_plan_status){0};
}
