/* The working directory of a command: opened once, checked, and entered by that descriptor. */
#ifndef COOP_KEEPER_CWD_H
#define COOP_KEEPER_CWD_H

#include <stddef.h>

#include "interface/err.h"

struct coop_agent;

struct coop_cwd {
	int fd;          /* O_PATH; -1: none */
	char name[4096]; /* as it was called, absolute; "": not even that */
	char path[4096]; /* absolute; as the kernel resolved it once there is a descriptor */
};

/* Opens what `given` means for that agent (NULL: its first workspace root, else the user's home;
 * relative paths start there), or its place in the /tmp that the agent's commands share, where
 * `path` says where that is on disk. Outside of what an agent may read a folder is opened if no
 * link is on the way, and nothing is said of it. It gives no right: whether the command could
 * enter it is found out when its view is known. 0, or the error filled: invalid_input (ret->path
 * says which path, "" if it is none), or spawn_failed for want of descriptors. */
int coop_cwd_open(const struct coop_agent *agent, const char *given, struct coop_cwd *ret,
		  struct coop_err *err);

/* The refusal of a folder that the command could not enter: one for all reasons, and with what
 * it was called, so that others than the user are not told by it whether something is there. */
int coop_cwd_closed(const struct coop_agent *agent, const char *name, struct coop_err *err);

#endif
