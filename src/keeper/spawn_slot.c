#include "keeper/spawn_slot.h"

#include <unistd.h>

#include "base/fdpass.h"
#include "keeper/confine.h"
#include "keeper/keeper.h"
#include "keeper/plans.h"
#include "keeper/process.h"
#include "keeper/spawn.h"
#include "keeper/wire.h"

int coop_spawn_enter_slot(struct coop_spawn *spawn, const struct coop_spawn_command *command,
			  struct coop_wire *wire, pid_t pid)
{
	struct coop_process *process = spawn->process;
	struct coop_buf message = {0};
	int fds[COOP_SPAWN_FDS_MAX], body_fd = -1;
	size_t count = 0;
	int r = coop_plans_make(process, COOP_PLAN_GO, command, &message, &body_fd);

	for (int i = 0; i < COOP_PLAN_FD_CHANNEL; i++)
		fds[count++] = spawn->fds[i];
	if (body_fd >= 0)
		fds[count++] = body_fd;
	for (uint32_t i = 0; i < process->confine->tree_count; i++)
		fds[count++] = process->confine->trees[i];
	coop_spawn_listen(spawn, wire);
	if (r == 0)
		r = coop_registry_set_root(process, pid);
	if (r == 0)
		r = coop_fdpass_send(wire->fd, coop_buf_front(&message), coop_buf_size(&message),
				     fds, count);
	if (body_fd >= 0)
		(void)close(body_fd);
	coop_buf_clear(&message);
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
