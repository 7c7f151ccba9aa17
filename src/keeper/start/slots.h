/* Prepared sandboxes: what takes time is done before a command comes. A slot is the first process
 * of its namespaces with a parked child, both waiting; it serves one process and dies with it.
 * Nothing of a request enters a slot before it is taken, and one of a kind never serves another:
 * identity, network, filter, layout of the root and home are the same, byte for byte. */
#ifndef COOP_KEEPER_SLOTS_H
#define COOP_KEEPER_SLOTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "base/buf.h"
#include "base/json/jsonw.h"
#include "base/list.h"
#include "keeper/launch/launch.h"

struct coop_keeper;
struct coop_launcher;
struct coop_net;
struct coop_pool;
struct coop_process;
struct coop_wire;

struct coop_slot {
	struct coop_pool *pool;
	struct coop_link in_pool;
	struct coop_launch launch;
	bool answered, ready;
	pid_t pid; /* 0: not known yet */
	struct coop_wire *wire;
};

/* NULL without memory. */
struct coop_slots *coop_slots_new(struct coop_keeper *keeper);
void coop_slots_free(struct coop_keeper *keeper);

/* Whether the process can be started in two steps at all: first a sandbox, then the command in
 * it. */
bool coop_slots_fit(const struct coop_process *process);

/* A slot that fits the process, taken out of its pool: the wire and the pid are the caller's from
 * now on, the struct is gone. `fill` is the plan that makes one, as coop_plans_make does. False:
 * none is there. Either way one of that kind will be made soon. */
bool coop_slots_take(struct coop_process *process, const struct coop_buf *fill,
		     struct coop_wire **ret_wire, pid_t *ret_pid);

/* A process and all of it is gone: a good moment to make another. */
void coop_slots_rest(struct coop_keeper *keeper);

/* A start failed for want of processes or memory: what is only prepared must not be the reason for
 * the next. */
void coop_slots_pressed(struct coop_keeper *keeper);

/* Whether that child of ours is the first process of a slot. */
bool coop_slots_has(const struct coop_keeper *keeper, pid_t pid);
/* It was reaped. */
void coop_slots_died(struct coop_keeper *keeper, pid_t pid);
/* Somebody has stopped it: it would let the command that takes it wait, and goes. */
void coop_slots_stopped(struct coop_keeper *keeper, pid_t pid);

/* That launcher is about to go: the slots that it makes go first. */
void coop_slots_drop_launcher(struct coop_keeper *keeper, const struct coop_launcher *launcher);

/* The session is over, or nobody is in its network any more: its slots go. */
void coop_slots_drop_net(const struct coop_net *net);

void coop_slots_write(const struct coop_keeper *keeper, struct coop_jsonw *w, const char *name);

#endif
