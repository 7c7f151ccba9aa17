/* How a process will be confined: decided from the policies in force and from what this host can
 * do, before anything is started. */
#ifndef COOP_KEEPER_DECIDE_H
#define COOP_KEEPER_DECIDE_H

#include "interface/err.h"

struct coop_draft;
struct coop_process;

/* Decides. The draft's cwd is open. 0 with draft->process->confine set, or the error filled. */
int coop_confine_make(struct coop_draft *draft);

/* It is about to be started: placeholders are put where its view needs them. 0, or the error
 * filled. */
int coop_confine_hold(struct coop_process *process, struct coop_err *err);

#endif
