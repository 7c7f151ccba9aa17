/* The end that agents were given: the keeper removes each when its time is over. One timer, for the
 * one that ends next. */
#ifndef COOP_KEEPER_EXPIRY_H
#define COOP_KEEPER_EXPIRY_H

struct coop_keeper;

/* An agent has another end than before, or is gone, or there are agents now: finds out which is
 * next. */
void coop_expiry_look(struct coop_keeper *keeper);

#endif
