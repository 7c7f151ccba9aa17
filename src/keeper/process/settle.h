/* What a process itself does when its phase changes: before anybody else hears of it. */
#ifndef COOP_KEEPER_SETTLE_H
#define COOP_KEEPER_SETTLE_H

struct coop_observer;

/* The first row of the table. */
extern const struct coop_observer coop_settle_observer;

#endif
