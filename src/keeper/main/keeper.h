/* The keeper as a program: what makes its parts, runs its loop and takes it apart again. */
#ifndef COOP_KEEPER_MAIN_KEEPER_H
#define COOP_KEEPER_MAIN_KEEPER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "interface/err.h"
#include "keeper/core/context.h"
#include "keeper/core/life.h"
#include "keeper/main/locks.h"
#include "keeper/main/reap.h"

struct coop_main {
	struct coop_keeper keeper;
	struct coop_life life;
	struct coop_reaper reaper;
	struct coop_locks locks;
	bool on_demand;  /* it leaves when there is nothing to keep */
	bool serves_one; /* the one client of a private keeper has been connected */
	uv_signal_t signals[3];
	uv_prepare_t before_sleep;
	uv_idle_t busy;  /* active while something is left to do at once */
	uv_timer_t idle; /* until it leaves; then, how long the last clients are waited for */
	bool idle_armed;
	struct coop_link shutdown_requests;
	uint64_t shutdown_live; /* how many lived when it was asked to leave */
};

/* Prepares everything but the socket. 0, or the error filled. The place, the configuration, the
 * listeners and the journal are there already. */
int coop_keeper_init(struct coop_main *main, struct coop_err *err);

/* Serves until shutdown. */
void coop_keeper_run(struct coop_main *main);

/* Frees everything; for leak checks at the end. False where a disk still holds something, or a
 * thread: then the process must end at once, without waiting for its threads. */
bool coop_keeper_free(struct coop_main *main);

#endif
