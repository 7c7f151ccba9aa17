/* What to change on this host so that a protection holds which does not: a sentence for people, from what was tried and how it failed. */
#ifndef COOP_KEEPER_REMEDIES_H
#define COOP_KEEPER_REMEDIES_H

#include <stddef.h>

#include "sandbox/protection.h"

struct coop_keeper;

#define COOP_REMEDY_MAX 400

/* What is missing for that protection, the weightiest first; "" where nothing is. */
void coop_remedy(const struct coop_keeper *keeper, enum coop_protection protection,
		 enum coop_strength strength, char ret[COOP_REMEDY_MAX]);

/* The same for what only control groups can do: the freezer, limits of several commands together. */
void coop_remedy_groups(const struct coop_keeper *keeper, char ret[COOP_REMEDY_MAX]);

#endif
