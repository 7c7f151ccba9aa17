/* User and net namespaces, from inside. In the child and the launcher: only system calls. */
#ifndef COOP_SANDBOX_NAMESPACES_H
#define COOP_SANDBOX_NAMESPACES_H

#include <stdint.h>

/* In a user namespace that was just made: maps one uid and one gid of it to those outside. 0 or -errno. */
int coop_namespaces_map(uint32_t uid, uint32_t outer_uid, uint32_t gid, uint32_t outer_gid);

/* Brings the loopback device of this net namespace up. 0 or -errno. */
int coop_namespaces_loopback(void);

#endif
