/* Signals to a program and its group that can hit nobody else. */
#ifndef COOP_KEEPER_LEADER_H
#define COOP_KEEPER_LEADER_H

#include <stdbool.h>

struct coop_process;

/* Whether the program is there to be signalled: not reaped, by us or by the first process of its
 * namespace. */
bool coop_leader_there(const struct coop_process *process);

/* Sends it, to the program alone or to its group. Whether it went out. */
bool coop_leader_signal(const struct coop_process *process, int number, bool group);

#endif
