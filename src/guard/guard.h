/* The guard: the keeper's parent. It waits for the keeper to end and then kills what the keeper
 * left behind: processes without a PID namespace, which fall to it because it is a child
 * subreaper. */
#ifndef COOP_GUARD_GUARD_H
#define COOP_GUARD_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Becomes the guard and forks. In the child it returns 0: that is the keeper, which gets SIGTERM
 * should the guard die. In the guard it returns the keeper's pid, to be given to
 * coop_guard_watch(). -errno on failure. */
pid_t coop_guard_fork(void);

/* Waits for the keeper, passing SIGTERM on, then kills until nothing is left; if that is certain,
 * the file with the keeper's mark (NULL: none) goes too. Returns the exit code to end with. */
int coop_guard_watch(pid_t keeper, const char *marks_path);

/* The file with a keeper's mark; false: a private keeper has none. */
bool coop_guard_marks_path(const char *state_dir, char *ret_path, size_t size);

struct coop_guard_findings {
	size_t ended, left; /* what an earlier keeper had left, and who could not be ended */
	int error;          /* why this keeper's mark is not on disk, -errno; 0: it is */
};

/* Ends what is left of an earlier keeper of the state folder that was killed along with its guard,
 * and keeps this keeper's own mark (sandbox/plan/plan.h) on disk for the next one. Before anything
 * is started; blocks for a few seconds at most. */
void coop_guard_inherit(const char *state_dir, uint64_t mark, struct coop_guard_findings *ret);

#endif
