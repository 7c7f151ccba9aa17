/* The first process of a PID namespace: makes the view, starts the program, reports and reaps. It
 * never runs foreign code, holds no environment and no fd but its channel, and nobody inside can
 * look into it. With it the kernel ends all of the namespace. */
#ifndef COOP_SANDBOX_INIT_H
#define COOP_SANDBOX_INIT_H

#include "sandbox/child/payload.h"
#include "sandbox/child/view.h"

/* Starts the payload and stays. */
_Noreturn void coop_init_run(struct coop_payload *payload, int channel);

/* A slot: starts the payload as far as is possible without a command, says READY, waits for the
 * rest over the channel, and goes on as above. The view has been made as far as the plan went. */
_Noreturn void coop_init_wait(struct coop_payload *payload, struct coop_view *view, int channel);

#endif
