/* Processes as the kernel's table shows them now. */
#ifndef COOP_BASE_PROCFS_H
#define COOP_BASE_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct coop_proc {
	pid_t pid, parent, group, session;
	uint64_t start_time; /* with the pid it names a process for ever */
	uint64_t cpu_ns;     /* of its reaped children */
	uint64_t memory_bytes;
	char state;   /* as in /proc/PID/stat */
	bool exiting; /* on its way to becoming a zombie */
	bool dead;    /* a zombie: all of its threads are gone */
};

/* One process. 0 or -errno. */
int coop_proc_read(pid_t pid, struct coop_proc *ret);

/* A file of /proc/PID as text, as much as fits. Its size or -errno. */
ssize_t coop_proc_read_file(pid_t pid, const char *file, char *ret_text, size_t size);

/* Whether the pid still is the one's that began then. */
bool coop_proc_is_there(pid_t pid, uint64_t start_time);

/* Signals exactly that process, or nobody: a reused pid is never hit. 0 or -errno (-ESRCH: gone).
 */
int coop_proc_signal(const struct coop_proc *proc, int number);

/* What a process carries in its limit of file locks, which the kernel hands on to whatever it
 * starts and obeys nowhere; 0 where that cannot be seen. */
uint64_t coop_proc_mark(pid_t pid);

/* Calls `take` with every process there is, until it says other than 0: that is the result. -errno
 * where there is no table. */
int coop_proc_each(int (*take)(void *user, const struct coop_proc *proc), void *user);

#endif
