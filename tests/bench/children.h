/* The children of another process, as the kernel lists them. */
#ifndef COOP_BENCH_CHILDREN_H
#define COOP_BENCH_CHILDREN_H

#include <stddef.h>

#define CHILDREN_MAX 1024u

struct children {
	size_t count;
	int pids[CHILDREN_MAX]; /* in order */
};

/* Of the process's first thread; a zombie counts. Ends the program if they cannot be had or are too
 * many. */
void children_read(int pid, struct children *ret);

/* How many are in both. */
size_t children_common(const struct children *first, const struct children *second);

#endif
