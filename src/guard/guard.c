#include "guard/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io/procfs.h"
#include "sandbox/plan/plan.h"

#define MARKS_MAX 8  /* keepers in a row that were killed before they had ended what they found */
#define BOOT_SIZE 37 /* of a name of the boot, with its NUL */
#define MARK_FORMAT "%s %016llx %llu\n"
#define MARK_LINE (BOOT_SIZE + 17 + 22)

/* What processes of a dead keeper are known by: its mark (sandbox/plan/plan.h) and when it began.
 */
struct mark {
	uint64_t mark;
	uint64_t since; /* as start_time of /proc */
};
/* More at once than any keeper may own; what does not fit is met in the next round. */
#define TABLE_MAX 65536
#define ROUNDS_MAX 500 /* of 20 ms at most */

#define MARKED_NS UINT64_C(5000000000) /* for those of an earlier keeper to die */

struct row {
	struct coop_proc proc;
	bool ours, spared;
};

/* Whom to kill: sets `ours` of the rows that all others are below. */
typedef void pick(struct row *rows, size_t count, const void *user);

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

struct table {
	struct row *rows;
	size_t count;
};

static int add_row(void *user, const struct coop_proc *proc)
{
	struct table *table = user;

	table->rows[table->count++] = (struct row){.proc = *proc};
	return table->count == TABLE_MAX;
}

static size_t read_table(struct row *rows)
{
	struct table table = {.rows = rows};

	(void)coop_proc_each(add_row, &table);
	return table.count;
}

/* Every descendant of those that are ours is ours. */
static void spread(struct row *rows, size_t count)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < count; i++) {
			bool ours = rows[i].ours;
			for (size_t j = 0; !ours && !rows[i].spared && j < count; j++)
				ours = rows[j].ours && rows[j].proc.pid == rows[i].proc.parent;
			more = more || (ours && !rows[i].ours);
			rows[i].ours = ours;
		}
	}
}

static void pick_children(struct row *rows, size_t count, const void *unused)
{
	(void)unused;
	for (size_t i = 0; i < count; i++)
		rows[i].ours = rows[i].proc.parent == getpid();
}

/* Stopped processes cannot fork: a table with nobody new holds all. Returns its size; all who are
 * ours there have been sent SIGKILL, if they may be. */
static size_t kill_picked(struct row *rows, pick *choose, const void *user)
{
	size_t before = 0, found = SIZE_MAX, count = 0;

	for (int round = 0; round < 32 && found != before; round++) {
		before = found;
		found = 0;
		count = read_table(rows);
		choose(rows, count, user);
		spread(rows, count);
		for (size_t i = 0; i < count; i++) {
			if (rows[i].ours)
				(void)coop_proc_signal(&rows[i].proc, SIGSTOP);
			found += rows[i].ours;
		}
	}
	for (size_t i = 0; i < count; i++) {
		if (rows[i].ours)
			(void)coop_proc_signal(&rows[i].proc, SIGKILL);
	}
	return count;
}

/* Until the kernel says that there is no child left. Orphans of those killed become ours in their
 * turn, and one that was born behind our back is met in the next round, at the latest after a
 * moment: no event tells of it. SIGCHLD is blocked. Returns whether nobody is left. */
static bool clear_up(void)
{
	struct row *rows = malloc(TABLE_MAX * sizeof *rows);
	const struct timespec moment = {.tv_nsec = 20000000};
	sigset_t child;
	bool nobody = false;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	/* What does not die in that time cannot be killed (it is stuck in the kernel, or has gained
	 * rights): the locks must not be held for it for ever. */
	for (int rounds = 0; rows && rounds < ROUNDS_MAX; rounds++) {
		pid_t pid;
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			;
		nobody = pid < 0;
		if (nobody)
			break;
		(void)kill_picked(rows, pick_children, NULL);
		(void)sigtimedwait(&child, NULL, &moment);
	}
	free(rows);
	return nobody;
}

int coop_guard_watch(pid_t keeper, const char *marks_path)
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
	if (clear_up() && marks_path)
		(void)unlink(marks_path);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Whether a process is this user's by its real number; root may end anybody's. */
static bool may_end(pid_t pid)
{
	char text[4096];
	const char *at;

	if (geteuid() == 0)
		return true;
	if (coop_proc_read_file(pid, "status", text, sizeof text) <= 0 ||
	    !(at = strstr(text, "\nUid:\t")))
		return false;
	return strtoul(at + strlen("\nUid:\t"), NULL, 10) == getuid();
}

struct marks {
	const struct mark *list;
	size_t count;
};

static bool carries(const struct coop_proc *proc, const struct marks *marks)
{
	uint64_t mark = coop_proc_mark(proc->pid) & ~COOP_MARK_NUMBER;

	for (size_t i = 0; i < marks->count; i++) {
		if (mark == marks->list[i].mark && proc->start_time >= marks->list[i].since)
			return may_end(proc->pid);
	}
	return false;
}

static void pick_marked(struct row *rows, size_t count, const void *user)
{
	for (size_t i = 0; i < count; i++) {
		const struct coop_proc *proc = &rows[i].proc;
		rows[i].spared = proc->dead || proc->pid == getpid() || proc->pid == getppid();
		rows[i].ours = !rows[i].spared && carries(proc, user);
	}
}

/* Waits for the death of one that was killed. */
static void await_death(const struct coop_proc *proc, uint64_t deadline)
{
	COOP_AUTO_FD int fd = pidfd_open(proc->pid, 0);
	struct pollfd end = {.fd = fd, .events = POLLIN};
	uint64_t at = coop_clock_now();

	if (fd >= 0 && at < deadline && coop_proc_is_there(proc->pid, proc->start_time))
		(void)poll(&end, 1, (int)((deadline - at) / 1000000u) + 1);
}

/* Kills processes that carry one of the marks and began after it, and all below them, until none is
 * left: their guard was killed along with their keeper. This process and its parent are spared:
 * such a process may have started them. Of other users' processes only root ends any. Blocks for a
 * few seconds at most. Returns how many were killed; *ret_left is how many are left all the
 * same. */
static size_t end_marked(const struct mark *marks, size_t count, size_t *ret_left)
{
	const struct marks wanted = {.list = marks, .count = count};
	const uint64_t deadline = coop_clock_now() + MARKED_NS;
	struct row *rows = malloc(TABLE_MAX * sizeof *rows);
	size_t killed = 0, found = rows ? SIZE_MAX : 0;

	while (found && (found == SIZE_MAX || coop_clock_now() < deadline)) {
		size_t total = kill_picked(rows, pick_marked, &wanted);
		found = 0;
		for (size_t i = 0; i < total; i++) {
			found += rows[i].ours;
			if (rows[i].ours)
				await_death(&rows[i].proc, deadline);
		}
		killed += found;
	}
	free(rows);
	*ret_left = found;
	return killed - found;
}

bool coop_guard_marks_path(const char *state_dir, char *ret_path, size_t size)
{
	int n = snprintf(ret_path, size, "%s/marks", state_dir);

	return *state_dir && n > 0 && (size_t)n < size;
}

/* This boot's name; nothing survives into another one, and marks of that mean nothing. */
static bool read_boot(char ret[BOOT_SIZE])
{
	COOP_AUTO_FD int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret, BOOT_SIZE - 1);

	ret[BOOT_SIZE - 1] = 0;
	return n == BOOT_SIZE - 1 && strspn(ret, "0123456789abcdef-") == BOOT_SIZE - 1;
}

/* Reads "BOOT MARK SINCE\n" exactly as it is written below. Whoever could write another line there
 * could have any process killed that is as old, so a mark must be one that a keeper makes. */
static bool parse_mark(const char *line, const char *boot, struct mark *ret)
{
	char again[MARK_LINE];
	unsigned long long mark, since;

	if (strncmp(line, boot, BOOT_SIZE - 1) != 0 ||
	    sscanf(line + BOOT_SIZE - 1, " %16llx %20llu", &mark, &since) != 2)
		return false;
	(void)snprintf(again, sizeof again, MARK_FORMAT, boot, mark, since);
	if (strncmp(line, again, strlen(again)) != 0 || !(mark & COOP_MARK_KEEPER) ||
	    (mark & ~COOP_MARK_KEEPER) != COOP_MARK_BASE)
		return false;
	*ret = (struct mark){.mark = mark, .since = since};
	return true;
}

/* The marks of this boot, the latest ones if there are more than fit. A file that others could have
 * written is not read. */
static size_t read_marks(const char *path, const char *boot, struct mark ret[MARKS_MAX])
{
	char text[MARKS_MAX * MARK_LINE];
	struct stat st;
	size_t count = 0;
	COOP_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & 022))
		return 0;
	ssize_t n = read(fd, text, sizeof text - 1);
	if (n <= 0)
		return 0;
	text[n] = 0;
	for (char *at = text, *end; count < MARKS_MAX && (end = strchr(at, '\n')); at = end + 1)
		count += parse_mark(at, boot, &ret[count]);
	return count;
}

/* Replaces the file. Without room on the disk those who outlive both keeper and guard are not
 * found. */
static int write_marks(const char *path, const char *boot, const struct mark *marks, size_t count)
{
	char fresh[4200], text[MARKS_MAX * MARK_LINE];
	size_t size = 0;

	(void)snprintf(fresh, sizeof fresh, "%s.new", path);
	for (size_t i = 0; i < count; i++)
		size += (size_t)snprintf(text + size, sizeof text - size, MARK_FORMAT, boot,
					 (unsigned long long)marks[i].mark,
					 (unsigned long long)marks[i].since);
	(void)unlink(fresh);
	COOP_AUTO_FD int fd =
		open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	ssize_t n = fd < 0 ? -1 : write(fd, text, size);
	if (n < 0)
		return -errno;
	return (size_t)n != size ? -ENOSPC : rename(fresh, path) < 0 ? -errno : 0;
}

void coop_guard_inherit(const char *state_dir, uint64_t mark, struct coop_guard_findings *ret)
{
	struct mark marks[MARKS_MAX];
	struct coop_proc self;
	char path[4200], boot[BOOT_SIZE];

	*ret = (struct coop_guard_findings){0};
	if (!coop_guard_marks_path(state_dir, path, sizeof path) || !read_boot(boot) ||
	    coop_proc_read(getpid(), &self) < 0)
		return;
	size_t count = read_marks(path, boot, marks);
	if (count == MARKS_MAX)
		memmove(marks, marks + 1, --count * sizeof *marks);
	const struct mark own = {.mark = mark, .since = self.start_time};
	marks[count] = own;
	/* Theirs stay until nobody carries them, should this keeper be killed meanwhile. */
	int r = write_marks(path, boot, marks, count + 1);
	if (count)
		ret->ended = end_marked(marks, count, &ret->left);
	if (r == 0 && count && !ret->left)
		r = write_marks(path, boot, &own, 1);
	ret->error = r;
}
