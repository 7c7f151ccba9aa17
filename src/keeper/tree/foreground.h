/* What runs in the foreground of a process's terminal. */
#ifndef COOP_KEEPER_FOREGROUND_H
#define COOP_KEEPER_FOREGROUND_H

#include <stdbool.h>
#include <sys/types.h>

struct coop_process;

/* Sends a signal to the terminal's foreground group, as its keys do. Whether it went out, and to
 * which group; 0 if there is none. Members of that group who are not the process's own get
 * nothing. */
bool coop_foreground_signal(struct coop_process *process, int number, pid_t *ret_group);

#endif
