/* What the keeper knows of its host: most is found out when it starts. */
#ifndef COOP_KEEPER_HOST_H
#define COOP_KEEPER_HOST_H

#include <stdbool.h>

#include "interface/err.h"
#include "sandbox/layout/host.h"

struct coop_found_memory;
struct coop_keeper;
struct coop_masks;
struct coop_scouts;

struct coop_keeper_host {
	bool root_keeper;
	bool probed;
	struct coop_host can;
	int probe_error; /* why nothing is known: an errno; 0 */
	/* root of this user namespace, and of the one outside: commands would be, too */
	bool outer_root;
	const char *whose; /* how the identity of confined commands was chosen, for people */
	/* Of homes, as commands are started: the last look for credentials, and where names are
	 * hidden for all (sandbox/policy/found.h, masks.h). NULL: none yet. */
	struct coop_found_memory *credentials;
	struct coop_masks *masks;
	struct coop_scouts *scouts; /* who looks up paths that the loop must not */
	bool conf_awaited;          /* one of them looks coop.conf up (ops/preflight.h) */
};

/* NULL without memory. */
struct coop_keeper_host *coop_keeper_host_new(void);

/* Chooses the identity and asks what works. Never fails: what is not known does not work. */
void coop_keeper_host_init(struct coop_keeper *keeper);

#endif
