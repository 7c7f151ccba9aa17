/* What the disk is told of the life of a process, and when: its start at once, its end after those
 * who wait for it have been answered. */
#ifndef COOP_KEEPER_ENDS_H
#define COOP_KEEPER_ENDS_H

struct coop_keeper;
struct coop_observer;

extern const struct coop_observer coop_store_observer;

/* Writes the ends that have been told to audit and database, now. */
void coop_ends_write(struct coop_keeper *keeper);

#endif
