/* Capabilities: none, and none to be gained. In the child: only system calls. */
#ifndef COOP_SANDBOX_CAPABILITIES_H
#define COOP_SANDBOX_CAPABILITIES_H

/* Gives up all that it has. 0 or -errno. */
int coop_capabilities_clear(void);

/* The same, and none can be gained by what it executes: empties the bounding set first. 0 or
 * -errno. */
int coop_capabilities_drop(void);

#endif
