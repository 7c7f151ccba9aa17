/* Freezing a tree: the kernel stops every process of it, also those that are just being born, until
 * it is thawed. Needs a freezer of control groups. */
#ifndef COOP_KEEPER_FREEZE_H
#define COOP_KEEPER_FREEZE_H

#include <stdbool.h>

struct coop_process;
struct coop_request;

void coop_op_freeze(struct coop_request *request);
void coop_op_thaw(struct coop_request *request);

/* Nobody dies while frozen in a freezer of version 1: what is to be killed is let go first. Does
 * nothing to others. */
void coop_freeze_release(struct coop_process *process);

/* Lets those go whom a keeper of that state folder that is dead left frozen; who killed them in
 * vain is then obeyed. Does nothing if there are none. */
void coop_freeze_let_go(const char *state_dir);

#endif
