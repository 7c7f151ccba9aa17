/* The keeper's side of the launcher: starts it from the copy inside this program, sends plans, takes replies, starts another if it
 * dies. */
#ifndef COOP_KEEPER_LAUNCHER_H
#define COOP_KEEPER_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

#include "keeper/list.h"

struct coop_keeper;
struct coop_spawn;

struct coop_launcher {
	int image_fd; /* sealed memfd with the program */
	pid_t pid;    /* 0: none runs */
	int fd;
	/* Its own allocation: closing it takes a turn of the loop, and a new one may start before that. */
	uv_poll_t *poll;
	int poll_events;
	uint64_t sequence; /* of the last plan sent */
	unsigned restarts;
	unsigned useless;       /* so many in a row died without an answer */
	struct coop_link queue; /* struct coop_spawn not sent yet */
	unsigned sent_count;
	struct coop_link sent; /* sent, not answered; oldest first */
	uv_timer_t watchdog;   /* runs while something is sent and not answered */
};

/* Makes the image and starts the first launcher. 0 or -errno. Must be called on the keeper's main thread: the launcher
 * and all processes die with the thread that started them. */
int coop_launcher_init(struct coop_keeper *keeper);
void coop_launcher_free(struct coop_keeper *keeper);

/* Queues a spawn's plan; it is sent when the socket takes it. The spawn's `answered` is called in time. */
void coop_launcher_submit(struct coop_keeper *keeper, struct coop_spawn *spawn);

/* Every plan up to this one has been answered, or its child has spoken for itself. */
uint64_t coop_launcher_answered(const struct coop_keeper *keeper);

/* A spawn is settled: it leaves the list, which may let the reaper go on. */
void coop_launcher_settled(struct coop_keeper *keeper, struct coop_spawn *spawn);

/* The launcher's pid was reaped. */
void coop_launcher_died(struct coop_keeper *keeper);

#endif
