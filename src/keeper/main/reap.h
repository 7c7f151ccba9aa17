/* Takes the kernel's reports of children: ends, stops, continuations. Costs as much as there are
 * reports. A leader's is handled at once, ahead of everything else; the others when the turn is
 * over, and again when a spawn has been answered that one of them waited for. */
#ifndef COOP_KEEPER_REAP_H
#define COOP_KEEPER_REAP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

struct coop_main;

struct coop_reaper {
	int fd; /* signalfd */
	uv_poll_t poll;
	bool due;         /* the kernel has said that there is something */
	bool recount;     /* orphans of ended records have been reaped */
	pid_t pid;        /* a dead child that cannot be judged … */
	uint64_t blocked; /* … before the spawns up to this one have been answered */
};

/* Begins to watch for children. 0 or -errno. */
int coop_reap_init(struct coop_main *main);

#endif
