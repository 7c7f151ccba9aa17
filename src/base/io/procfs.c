#include "base/io/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#define PF_EXITING 4u /* the kernel's flag: has given up its memory, is not a zombie yet */

ssize_t coop_proc_read_file(pid_t pid, const char *file, char *ret_text, size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
	COOP_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, ret_text, size - 1);
	if (n < 0)
		return -errno;
	ret_text[n] = 0;
	return n;
}

/* Reads /proc/PID/stat. The name may hold anything, so fields are counted from its closing
 * parenthesis. */
int coop_proc_read(pid_t pid, struct coop_proc *ret)
{
	/* Which fields are wanted, counted from the name; scanf would cost more than reading
	 * them. */
	enum {
		PARENT = 2,
		GROUP,
		SESSION,
		FLAGS = 7,
		CHILDREN_USER = 14,
		CHILDREN_SYSTEM,
		THREADS = 18,
		START = 20,
		PAGES = 22,
		COUNT
	};
	char text[1024];
	uint64_t field[COUNT] = {0};
	ssize_t n = coop_proc_read_file(pid, "stat", text, sizeof text);

	if (n < 0)
		return (int)n;
	char *at = strrchr(text, ')');
	if (!at || at[1] != ' ' || !at[2])
		return -EPROTO;
	char state = at[2];
	at += 3;
	for (int i = PARENT; i < COUNT; i++) {
		if (*at != ' ')
			return -EPROTO;
		field[i] = (uint64_t)strtoll(at, &at, 10);
	}
	/* A process whose first thread has exited while others run shows Z too, and is as alive as
	 * any. */
	bool headless = field[THREADS] > 1 && state == 'Z';
	*ret = (struct coop_proc){
		.pid = pid,
		.state = state,
		.dead = state == 'X' || (state == 'Z' && !headless),
		.parent = (pid_t)field[PARENT],
		.group = (pid_t)field[GROUP],
		.session = (pid_t)field[SESSION],
		.exiting = (field[FLAGS] & PF_EXITING) && !headless,
		.start_time = field[START],
		.memory_bytes = field[PAGES] * (uint64_t)sysconf(_SC_PAGESIZE),
		.cpu_ns = (field[CHILDREN_USER] + field[CHILDREN_SYSTEM]) *
			  (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK)),
	};
	return 0;
}

bool coop_proc_is_there(pid_t pid, uint64_t start_time)
{
	struct coop_proc now;

	return coop_proc_read(pid, &now) == 0 && now.start_time == start_time;
}

int coop_proc_signal(const struct coop_proc *proc, int number)
{
	COOP_AUTO_FD int fd = (int)syscall(SYS_pidfd_open, proc->pid, 0);

	if (fd < 0)
		return -errno;
	/* The descriptor names one process for ever; this looks that it is the one that was
	 * meant. */
	if (!coop_proc_is_there(proc->pid, proc->start_time))
		return -ESRCH;
	return syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) < 0 ? -errno : 0;
}

/* The limit as /proc shows it to everybody: a program that has gained rights may not be asked
 * otherwise. */
static uint64_t read_mark(pid_t pid)
{
	char text[4096];
	const char *at = coop_proc_read_file(pid, "limits", text, sizeof text) > 0
				 ? strstr(text, "Max file locks")
				 : NULL;

	return at ? strtoull(at + strcspn(at, "0123456789\n"), NULL, 10) : 0;
}

uint64_t coop_proc_mark(pid_t pid)
{
	struct rlimit limit;

	if (prlimit(pid, RLIMIT_LOCKS, NULL, &limit) == 0)
		return limit.rlim_cur;
	return errno == EPERM ? read_mark(pid) : 0;
}

int coop_proc_each(int (*take)(void *user, const struct coop_proc *proc), void *user)
{
	DIR *table = opendir("/proc");
	const struct dirent *item;
	struct coop_proc proc;
	int r = table ? 0 : -errno;

	while (r == 0 && (item = readdir(table))) {
		if (*item->d_name >= '1' && *item->d_name <= '9' &&
		    coop_proc_read(atoi(item->d_name), &proc) == 0)
			r = take(user, &proc);
	}
	if (table)
		(void)closedir(table);
	return r;
}
