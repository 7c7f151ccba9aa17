/* The guard: the keeper's parent. It waits for the keeper to end and then kills what the keeper left behind: processes without a PID
 * namespace, which fall to it because it is a child subreaper. */
#ifndef COOP_KEEPER_GUARD_H
#define COOP_KEEPER_GUARD_H

#include <sys/types.h>

/* Becomes the guard and forks. In the child it returns 0: that is the keeper, which gets SIGTERM should the guard die. In the
 * guard it returns the keeper's pid, to be given to coop_guard_watch(). -errno on failure. */
pid_t coop_guard_fork(void);

/* Waits for the keeper, passing SIGTERM on, then kills until nothing is left. Returns the exit code to end with. */
int coop_guard_watch(pid_t keeper);

#endif
