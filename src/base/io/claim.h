/* A claim: a file beside a place that only one process at a time may serve. It holds that process's
 * pid, and a lock that the kernel drops with the last copy of its descriptor: whoever finds it
 * locked knows that somebody lives there, whether or not it answers yet. What stands in the file is
 * advice for people; the lock alone decides. */
#ifndef COOP_BASE_CLAIM_H
#define COOP_BASE_CLAIM_H

#include <stdbool.h>
#include <sys/types.h>

/* The exit status of `coop-keeper --daemon` that found the claim of its socket taken (EX_TEMPFAIL):
 * whoever started it may use the other keeper, or try again if that is gone. */
#define COOP_CLAIM_LOST 75

/* Takes the claim and writes this process's pid there. 0 with the descriptor that holds it, which
 * is close-on-exec and the caller's; -EWOULDBLOCK: somebody has it; or another -errno: none can be
 * had here (a file system without such locks). Never waits. */
int coop_claim_take(const char *path, int *ret_fd);
/* The same, but waits until a signal comes (-EWOULDBLOCK). */
int coop_claim_wait(const char *path, int *ret_fd);

/* Writes the pid anew: a child took the claim over with the descriptor. */
void coop_claim_name(int fd);

/* Whether somebody holds it; takes nothing itself. *ret_pid is who, as the file says; 0: it does
 * not say. */
bool coop_claim_held(const char *path, pid_t *ret_pid);

#endif
