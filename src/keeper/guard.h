/* The guard: the keeper's parent. It waits for the keeper to end and then kills what the keeper left behind: processes without a PID
 * namespace, which fall to it because it is a child subreaper. */
#ifndef COOP_KEEPER_GUARD_H
#define COOP_KEEPER_GUARD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Becomes the guard and forks. In the child it returns 0: that is the keeper, which gets SIGTERM should the guard die. In the
 * guard it returns the keeper's pid, to be given to coop_guard_watch(). -errno on failure. */
pid_t coop_guard_fork(void);

/* Waits for the keeper, passing SIGTERM on, then kills until nothing is left; if that is certain,
 * the file with the keeper's mark (NULL: none) goes too. Returns the exit code to end with. */
int coop_guard_watch(pid_t keeper, const char *marks_path);

/* What processes of a dead keeper are known by: its mark (sandbox/plan.h) and when it began. */
struct coop_guard_mark {
	uint64_t mark;
	uint64_t since; /* as start_time of /proc */
};

/* Kills processes that carry one of the marks and began after it, and all below them, until none is
 * left: their guard was killed along with their keeper. This process and its parent are spared:
 * such a process may have started them. Of other users' processes only root ends any. Blocks for a
 * few seconds at most. Returns how many were killed; *ret_left is how many are left all the same. */
size_t coop_guard_end_marked(const struct coop_guard_mark *marks, size_t count, size_t *ret_left);

#endif
