/* What to change on this host so that a protection holds which does not: a sentence for people,
 * from what was tried and how it failed. */
#ifndef COOP_KEEPER_REMEDIES_H
#define COOP_KEEPER_REMEDIES_H

#include <stdbool.h>
#include <stddef.h>

#include "sandbox/layout/host.h"
#include "sandbox/policy/protection.h"

#define COOP_REMEDY_MAX 400

/* What was found of the host. */
struct coop_remedy_host {
	const struct coop_host *can;
	int probe_error; /* why nothing is known: an errno; 0 */
	bool root_keeper;
};

/* What is missing for that protection, the weightiest first; "" where nothing is. */
void coop_remedy(const struct coop_remedy_host *host, enum coop_protection protection,
		 enum coop_strength strength, char ret[COOP_REMEDY_MAX]);

/* The same for what only control groups can do: the freezer, limits of several commands
 * together. */
void coop_remedy_groups(const struct coop_remedy_host *host, char ret[COOP_REMEDY_MAX]);

#endif
