/* Why a process could not be started, in words. */
#ifndef COOP_KEEPER_SPAWN_FAILURE_H
#define COOP_KEEPER_SPAWN_FAILURE_H

#include "interface/err.h"

struct coop_spawn;

/* The error for a step of that name. */
int coop_spawn_failed_at(struct coop_err *err, const char *step, int error);

/* The error for what the launcher or the child told. One of the sandbox names the protection. */
void coop_spawn_explain(const struct coop_spawn *spawn, struct coop_err *err);

#endif
