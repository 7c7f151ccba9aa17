/* Between launcher.c and launcher_start.c. */
#ifndef COOP_KEEPER_LAUNCHER_START_H
#define COOP_KEEPER_LAUNCHER_START_H

#include <sys/types.h>

#include "keeper/launch/helpers.h"
#include "keeper/launch/launcher.h"

struct coop_launchers {
	int image_fd;      /* sealed memfd with the program */
	int filters_fd;    /* another with the system call filters */
	uint64_t sequence; /* of the last plan sent to any */
	unsigned restarts;
	struct coop_link all;
	struct coop_helpers helpers;
};

struct coop_launcher_start {
	const struct coop_launcher_class *class;
	int socket; /* filled by the start */
	int userns; /* to be joined; -1: none */
	const int *doors;
	int door_count;
};

/* Starts the program. 0 with our end of its socket and its pid, or -errno. */
int coop_launcher_start(struct coop_keeper *keeper, struct coop_launcher_start *how, int *ret_fd,
			pid_t *ret_pid);

/* The same fd under a number that is high enough not to be overwritten on the way into a launcher;
 * the old one is closed. -errno. */
int coop_launcher_raise_fd(int fd);
/* The same for all of them. 0; or -errno, and all are closed. */
int coop_launcher_raise_fds(int *fds, int count);

#endif
