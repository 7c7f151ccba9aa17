/* What confinement has to do with the life of a process: why the kernel ended it, and what goes
 * with it. */
#ifndef COOP_KEEPER_CONFINE_WATCH_H
#define COOP_KEEPER_CONFINE_WATCH_H

struct coop_observer;

extern const struct coop_observer coop_confine_observer;

#endif
