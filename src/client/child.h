/* The one child that the library may start: a keeper. Made so that the embedding program's own
 * handling of children (SIGCHLD ignored, a handler that reaps everything) cannot disturb it: it
 * is held by a pidfd, which no reused pid can fool. */
#ifndef COOP_CLIENT_CHILD_H
#define COOP_CLIENT_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#define COOP_CHILD_FD 3 /* where coop_child_start puts `pass_fd` */

struct coop_child {
	pid_t pid; /* 0: none */
	int pidfd;
};

/* What becomes of the child's descriptors: stdin and stdout are /dev/null, `error_fd` is stderr,
 * pass_fd (if not -1) is COOP_CHILD_FD; all others are closed. Signals are at their defaults and
 * unblocked. */
struct coop_child_plan {
	const char *program;
	char *const *argv;
	char *const *env;
	int error_fd;
	int pass_fd;
	bool new_session; /* the terminal's Ctrl-C is not for it */
};

int coop_child_start(const struct coop_child_plan *plan, struct coop_child *ret);

/* Waits until the child has ended and reaps it. 0 with its wait status, or -1 as status if
 * somebody else reaped it; -ETIMEDOUT. After 0 the child is gone and *child is empty. */
int coop_child_wait(struct coop_child *child, int timeout_ms, int *ret_status);

/* Waits as above; a child that does not end in time is killed. */
void coop_child_end(struct coop_child *child, int timeout_ms);

/* A bounded file without a name for the child's stderr, and the last line of what was written
 * to it, without the program's name in front: why it ended. */
int coop_child_error_file(void);
void coop_child_error_line(int fd, char *ret_line, size_t size);

#endif
