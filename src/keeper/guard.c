#include "keeper/guard.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "keeper/tree.h"

/* More at once than any keeper may own; what does not fit is met in the next round. */
#define TABLE_MAX 65536
#define ROUNDS_MAX 500 /* of 20 ms at most */

struct row {
	struct coop_tree_entry entry;
	bool ours;
};

pid_t coop_guard_fork(void)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return -errno;
	pid_t guard = getpid(), keeper = fork();
	if (keeper != 0)
		return keeper < 0 ? -errno : keeper;
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
	if (getppid() != guard)
		_exit(1); /* it died before the signal was armed */
	return 0;
}

static size_t read_table(struct row *rows)
{
	DIR *proc = opendir("/proc");
	const struct dirent *item;
	size_t count = 0;

	while (proc && count < TABLE_MAX && (item = readdir(proc))) {
		pid_t pid = atoi(item->d_name);
		rows[count].ours = false;
		count += pid > 0 && coop_tree_read(pid, &rows[count].entry) == 0;
	}
	if (proc)
		(void)closedir(proc);
	return count;
}

/* Marks every descendant of this process. */
static void mark(struct row *rows, size_t count)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < count; i++) {
			bool ours = rows[i].entry.parent == getpid();
			for (size_t j = 0; !ours && !rows[i].ours && j < count; j++)
				ours = rows[j].ours && rows[j].entry.pid == rows[i].entry.parent;
			more = more || (ours && !rows[i].ours);
			rows[i].ours = rows[i].ours || ours;
		}
	}
}

/* Stopped processes cannot fork: a table with nobody new holds all. */
static void kill_descendants(struct row *rows)
{
	size_t before = 0, found = SIZE_MAX, count = 0;

	for (int round = 0; round < 32 && found != before; round++) {
		before = found;
		found = 0;
		count = read_table(rows);
		mark(rows, count);
		for (size_t i = 0; i < count; i++) {
			if (rows[i].ours)
				(void)coop_tree_signal(&rows[i].entry, SIGSTOP);
			found += rows[i].ours;
		}
	}
	for (size_t i = 0; i < count; i++) {
		if (rows[i].ours)
			(void)coop_tree_signal(&rows[i].entry, SIGKILL);
	}
}

/* Until the kernel says that there is no child left. Orphans of those killed become ours in their turn, and one that was born
 * behind our back is met in the next round, at the latest after a moment: no event tells of it. SIGCHLD is blocked. */
static void clear_up(void)
{
	struct row *rows = malloc(TABLE_MAX * sizeof *rows);
	const struct timespec moment = {.tv_nsec = 20000000};
	sigset_t child;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	/* What does not die in that time cannot be killed (it is stuck in the kernel, or has gained rights): the locks must not be
	 * held for it for ever. */
	for (int rounds = 0; rows && rounds < ROUNDS_MAX; rounds++) {
		pid_t pid;
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		if (pid < 0)
			break;
		kill_descendants(rows);
		(void)sigtimedwait(&child, NULL, &moment);
	}
	free(rows);
}

int coop_guard_watch(pid_t keeper)
{
	sigset_t waited;
	int status = 0;

	(void)sigemptyset(&waited);
	for (int i = 0; i < 5; i++)
		(void)sigaddset(&waited,
				(const int[]){SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT}[i]);
	(void)sigprocmask(SIG_BLOCK, &waited, NULL);
	for (pid_t pid = 0; pid != keeper;) {
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0 && pid != keeper)
			;
		if (pid == keeper || (pid < 0 && errno == ECHILD))
			break;
		/* A terminal's Ctrl-C reaches the keeper by itself. */
		int number = sigwaitinfo(&waited, NULL);
		if (number == SIGTERM || number == SIGHUP)
			(void)kill(keeper, number);
	}
	clear_up();
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
