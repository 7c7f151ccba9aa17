/* The descriptors of a process that is being started: pipes or a terminal, one end for the keeper,
 * one for the child. */
#ifndef COOP_KEEPER_SPAWN_FDS_H
#define COOP_KEEPER_SPAWN_FDS_H

#include <stdbool.h>
#include <stddef.h>

struct coop_spawn;

/* Opens stdin, stdout and stderr. The keeper's ends are the process's and are watched; the child's
 * are in spawn->fds, also on failure: close them. 0 or -errno. */
int coop_spawn_fds_open(struct coop_spawn *spawn, bool with_stdin);

/* Those that go with the message to the launcher, COOP_LAUNCH_FDS_MAX at most; those that go with
 * the rest, where there is one. How many. */
size_t coop_spawn_plan_fds(const struct coop_spawn *spawn, int *ret);
size_t coop_spawn_rest_fds(const struct coop_spawn *spawn, int *ret);

/* Closes the child's ends. */
void coop_spawn_fds_close(struct coop_spawn *spawn);

#endif
