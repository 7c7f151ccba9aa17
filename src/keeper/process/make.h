/* The beginning and the end of a process as the keeper has it: its memory, and what hangs on it. */
#ifndef COOP_KEEPER_MAKE_H
#define COOP_KEEPER_MAKE_H

struct coop_agent;
struct coop_process;

/* A new process that is in no registry, one reference held by the caller; NULL without memory. */
struct coop_process *coop_process_new(struct coop_agent *agent);

#endif
