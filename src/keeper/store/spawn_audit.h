/* The audit's lines: one for each attempt to start a process, one for each end, one when a fault is
 * acknowledged. No value of a variable, no input, no output and no id that could be used ever
 * stands there; hashes are keyed. */
#ifndef COOP_KEEPER_SPAWN_AUDIT_H
#define COOP_KEEPER_SPAWN_AUDIT_H

#include "interface/err.h"

struct coop_keeper;
struct coop_process;
struct coop_request;

/* It will be started. 0, or the error filled: then it must not be. */
int coop_spawn_audit_allowed(struct coop_request *request, struct coop_process *process,
			     struct coop_err *err);

/* It will not be, and why. The process as far as it came; NULL: there is none. */
void coop_spawn_audit_refused(struct coop_request *request, const struct coop_process *process,
			      const struct coop_err *why);

/* It was allowed, and for want of something it came to no attempt: the audit must hear of that. */
void coop_spawn_audit_not_started(struct coop_process *process);

/* A process that was allowed has ended, or could not be executed. */
void coop_spawn_audit_end(struct coop_process *process);

/* The operator has taken note of the fault that was found at start. 0, or the error filled: then it
 * stands. */
int coop_spawn_audit_acknowledged(struct coop_keeper *keeper, struct coop_err *err);

#endif
