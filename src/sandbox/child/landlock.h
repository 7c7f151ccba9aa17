/* Landlock: the second wall behind the mounts, and the first where there are none. In the child: no
 * heap, only system calls. */
#ifndef COOP_SANDBOX_LANDLOCK_H
#define COOP_SANDBOX_LANDLOCK_H

#include <stdint.h>

#include "sandbox/plan/plan.h"

/* The highest ABI that both the kernel and this code know; 0: none, or one that would do more harm
 * than good (below 2). */
uint32_t coop_landlock_abi(void);

/* A ruleset that allows nothing yet. Its fd, or -errno. */
int coop_landlock_open(uint32_t abi, uint32_t scopes);

/* Allows below path, or for that one file: READ reading and executing; WRITE all but making device
 * files; DEVICES reading, writing and ioctl; PROC reading. Where path is not there, cannot be
 * reached or leads over a link, nothing is allowed. 0 or -errno. Works under the filters, too. */
int coop_landlock_allow(int ruleset, uint32_t abi, const char *path, enum coop_plan_access access);

/* The same for what is open already, which may be of another view: a terminal. */
int coop_landlock_allow_fd(int ruleset, uint32_t abi, int fd, enum coop_plan_access access);

/* From here on it holds for this process and all that it starts; no_new_privs must be set. 0 or
 * -errno. */
int coop_landlock_enforce(int ruleset);

#endif
