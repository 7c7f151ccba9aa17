/* Whom a process is in its user namespace, and outside. In the child and the launcher: only system
 * calls. */
#ifndef COOP_SANDBOX_IDENTITY_H
#define COOP_SANDBOX_IDENTITY_H

#include <stdint.h>

/* In a user namespace that was just made: maps one uid and one gid of it to those outside. 0 or
 * -errno. */
int coop_identity_map(uint32_t uid, uint32_t outer_uid, uint32_t gid, uint32_t outer_gid);

#endif
