/* What confinement has to do with the life of a process: why the kernel ended it, and what goes
 * with it. */
#ifndef COOP_KEEPER_CONFINE_WATCH_H
#define COOP_KEEPER_CONFINE_WATCH_H

struct coop_agent;
struct coop_observer;
struct coop_process;

extern const struct coop_observer coop_confine_observer;

/* Nobody of it is left, or it was never started. */
void coop_confine_over(struct coop_process *process);

/* An agent goes: its network, and the group of its processes. May be said twice. */
void coop_confine_agent_left(struct coop_agent *agent);

#endif
