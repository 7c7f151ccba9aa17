/* The child's words to the keeper, over its channel. In the child: only system calls. */
#ifndef COOP_SANDBOX_CHANNEL_H
#define COOP_SANDBOX_CHANNEL_H

#include <sys/types.h>

#include "sandbox/plan/plan.h"

/* Sends the message. With `about` other than 0 the keeper is told that process as the sender: its
 * pid as it is seen here; the caller needs the rights of its namespace's first process. 0 or
 * -errno. */
int coop_channel_send(int channel, const struct coop_plan_status *message, pid_t about);

/* Tells that a step has failed, with errno, and exits: with 127 where the program is missing, else
 * with 126. */
_Noreturn void coop_channel_fail(int channel, enum coop_plan_step step, uint32_t op);

/* Arms the signal that ends this process with the keeper; exits if that is gone already. Set after
 * the last change of ids, which clears it. */
void coop_channel_die_with_keeper(int channel);

#endif
