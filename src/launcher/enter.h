/* How a launcher becomes what it is to be: its control groups, its identity, its namespaces. */
#ifndef COOP_LAUNCHER_ENTER_H
#define COOP_LAUNCHER_ENTER_H

#include <stdint.h>

#include "sandbox/plan/plan.h"

struct coop_enter {
	enum coop_launcher_kind kind;
	int change_ids; /* to uid and gid */
	uint32_t uid, gid;
	int doors;
	int join;
};

/* Reads the arguments. 0 or -EINVAL. */
int coop_enter_parse(char *const *argv, struct coop_enter *ret);

/* Enters the groups; changes to the other ids, if any, by which it is executed anew, and then does
 * not return. 0 or -errno. */
int coop_enter_identity(const struct coop_enter *enter, char **argv);

/* Makes or joins the user namespace. The kinds with a network of their own leave the host's. 0 or
 * -errno. */
int coop_enter_namespaces(const struct coop_enter *enter);

#endif
