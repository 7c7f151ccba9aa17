/* A net namespace, from inside. In the child and the launcher: only system calls. */
#ifndef COOP_SANDBOX_NAMESPACES_H
#define COOP_SANDBOX_NAMESPACES_H

#include <stdbool.h>
#include <stdint.h>

/* Brings its loopback device up. 0 or -errno. */
int coop_namespaces_loopback(void);

/* What the kernel counts for each user and user namespace, so that it has to be shared out:
 * inotify. */
struct coop_user_counts {
	uint32_t instances, watches; /* 0: not known */
};

/* What a user of this host may have in all. */
void coop_namespaces_counts(struct coop_user_counts *ret);

/* In the user namespace that was just made, by whoever has all rights in it: it and all below it
 * may have these, and with `last` no user namespace can be made below it. What the kernel does
 * not let one say stays as it is. `proc` is a /proc; one that was just made is best, as in
 * another the kernel compares the names with those of all other namespaces. */
void coop_namespaces_bound(int proc, const struct coop_user_counts *counts, bool last);
/* The same by way of the host's. */
void coop_namespaces_bound_here(const struct coop_user_counts *counts, bool last);

#endif
