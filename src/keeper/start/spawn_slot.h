/* A spawn in two steps: a sandbox, and the command in it. The sandbox is a slot that was prepared,
 * or is made for this command; the rest is sent to it over its channel, be it ready or not. */
#ifndef COOP_KEEPER_SPAWN_SLOT_H
#define COOP_KEEPER_SPAWN_SLOT_H

#include <sys/types.h>

struct coop_spawn;
struct coop_wire;

/* Makes the message that makes the sandbox. 0 or -errno. */
int coop_spawn_plan_sandbox(struct coop_spawn *spawn);

/* Sends the rest of the plan to whoever has the other end of the wire, or will. 0 or -errno. */
int coop_spawn_send_rest(const struct coop_spawn *spawn, const struct coop_wire *wire);

/* The slot becomes the process. 0, or -errno: the wire is closed, and it takes the other way. */
int coop_spawn_enter_slot(struct coop_spawn *spawn, struct coop_wire *wire, pid_t pid);

/* What was prepared did not fit after all: the folder was moved, the host has changed, or it was
 * stopped. All is as before it was entered. 0, or -errno: what was handed to it cannot be had
 * again. */
int coop_spawn_leave_slot(struct coop_spawn *spawn);

/* The first process is known: from now on it is looked at now and then, until the program has been
 * executed, whether somebody has stopped it. */
void coop_spawn_watch(struct coop_spawn *spawn);
/* COOP_DUE_START: takes such a look. */
void coop_spawn_due(struct coop_spawn *spawn);
/* The first process, or the one that is to become the program, was stopped: the sandbox is ended.
 * If it was prepared, the launcher begins anew when it is gone, so that nothing is ever run twice;
 * else the start fails. Nothing happens if the program has been executed. */
void coop_spawn_stands(struct coop_spawn *spawn);

#endif
