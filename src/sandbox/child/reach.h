/* What the kernel counted of attempts to reach other hosts from this net namespace. In the child:
 * no heap, only system calls. */
#ifndef COOP_SANDBOX_REACH_H
#define COOP_SANDBOX_REACH_H

#include <stdint.h>

/* How many packets and connections had no way to go, since the namespace was made. 0 also where the
 * kernel does not tell. */
uint64_t coop_reach_refused(void);

#endif
