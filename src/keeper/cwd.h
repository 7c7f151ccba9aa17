/* The working directory of a command: opened once, checked, and entered by that descriptor. */
#ifndef COOP_KEEPER_CWD_H
#define COOP_KEEPER_CWD_H

#include <stddef.h>

#include "base/err.h"

struct coop_agent;

struct coop_cwd {
	int fd;          /* O_PATH; -1: none */
	char path[4096]; /* absolute; as the kernel resolved it once there is a descriptor */
};

/* Opens what `given` means for that agent (NULL: its first workspace root, else the user's home; relative paths start there). For an
 * agent that is bound to workspace roots it must lie in those of each level, however it is written; or in the /tmp that its commands share, where `path` says where that is on
 * disk. 0, or the error filled: boundary_escape, invalid_input (ret->path says which path, "" if it is none), or
 * spawn_failed for want of descriptors. */
int coop_cwd_open(const struct coop_agent *agent, const char *given, struct coop_cwd *ret,
		  struct coop_err *err);

#endif
