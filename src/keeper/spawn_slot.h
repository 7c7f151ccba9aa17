/* A spawn through a prepared sandbox. */
#ifndef COOP_KEEPER_SPAWN_SLOT_H
#define COOP_KEEPER_SPAWN_SLOT_H

#include <sys/types.h>

struct coop_spawn;
struct coop_spawn_command;
struct coop_wire;

/* Sends the rest of the plan to a slot, which becomes the process. 0, or -errno: the wire is closed, and it takes the other way. */
int coop_spawn_enter_slot(struct coop_spawn *spawn, const struct coop_spawn_command *command,
			  struct coop_wire *wire, pid_t pid);

/* What was prepared did not fit after all: the folder was moved, or the host has changed. All is as before it was entered. */
void coop_spawn_leave_slot(struct coop_spawn *spawn);

#endif
