#include "keeper/tree/blocked.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <termios.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io/procfs.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/tree/tree.h"

#define THREADS_MAX 64 /* looked at per process */
#define POLLED_MAX 256 /* descriptors of one poll that are looked at */

/* What is looked for: the file that is the process's input, by the name that /proc/PID/fd shows. */
struct input {
	char name[64]; /* pipe:[4711] or /dev/pts/3 */
	bool terminal;
};

struct search {
	struct input input;
	enum coop_known answer;
};

/* The name is read, and nothing opened or followed: whatever else the program has open may be on a
 * disk that does not answer. */
static bool is_input(const struct input *input, pid_t pid, int fd)
{
	char path[64], name[64];

	(void)snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
	ssize_t size = fd < 0 ? -1 : readlink(path, name, sizeof name - 1);
	if (size < 0)
		return false;
	name[size] = 0;
	/* A terminal may also be open as /dev/tty, which stands for it. */
	return !strcmp(name, input->name) || (input->terminal && !strcmp(name, "/dev/tty"));
}

/* The memory of another process, which may change or go meanwhile. */
static bool peek(pid_t pid, uint64_t address, void *ret_bytes, size_t size)
{
	struct iovec local = {.iov_base = ret_bytes, .iov_len = size};
	struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = size};

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

/* One of several descriptors: it waits for input if that is all it waits for; for more than one
 * thing at a time nobody can say. */
static enum coop_known judge(unsigned inputs, unsigned others)
{
	if (!inputs)
		return COOP_NO;
	return others ? COOP_UNKNOWN : COOP_YES;
}

/* A set that is too large, or cannot be read, is not known; it is not no. */
static enum coop_known in_poll(const struct input *input, pid_t pid, const uint64_t *args)
{
	struct pollfd fds[POLLED_MAX];
	uint64_t count = args[1];
	unsigned inputs = 0, others = 0;

	if (count == 0)
		return COOP_NO;
	if (count > POLLED_MAX || !peek(pid, args[0], fds, count * sizeof *fds))
		return COOP_UNKNOWN;
	for (uint64_t i = 0; i < count; i++) {
		bool match = (fds[i].events & POLLIN) && is_input(input, pid, fds[i].fd);
		inputs += match;
		others += !match && fds[i].fd >= 0;
	}
	return judge(inputs, others);
}

static enum coop_known in_select(const struct input *input, pid_t pid, const uint64_t *args)
{
	uint64_t words[16] = {0};
	int count = (int)args[0];
	unsigned inputs = 0, others = 0;

	if (count <= 0 || !args[1])
		return COOP_NO;
	if (count > 1024 || !peek(pid, args[1], words, ((size_t)count + 63) / 64 * 8))
		return COOP_UNKNOWN;
	for (int fd = 0; fd < count; fd++) {
		if (!(words[fd / 64] >> (fd % 64) & 1))
			continue;
		bool match = is_input(input, pid, fd);
		inputs += match;
		others += !match;
	}
	return judge(inputs, others);
}

/* An epoll set watches for more than input nearly always (event loops have a wake-up of their own),
 * so a set that holds the input among others is unknown. */
static enum coop_known in_epoll(const struct input *input, pid_t pid, int epoll)
{
	char path[64], line[256];
	unsigned inputs = 0, others = 0;
	int fd;

	(void)snprintf(path, sizeof path, "/proc/%d/fdinfo/%d", pid, epoll);
	FILE *info = fopen(path, "re");
	if (!info)
		return COOP_UNKNOWN;
	while (fgets(line, sizeof line, info)) {
		if (sscanf(line, "tfd: %d", &fd) != 1)
			continue;
		bool match = is_input(input, pid, fd);
		inputs += match;
		others += !match;
	}
	(void)fclose(info);
	return judge(inputs, others);
}

/* Calls that can wait for input, by number: whatever else a thread sleeps in is no wait for
 * input. */
static enum coop_known in_call(const struct input *input, pid_t pid, long call,
			       const uint64_t *args)
{
	switch (call) {
	case SYS_read:
	case SYS_readv:
	case SYS_splice:
		return is_input(input, pid, (int)args[0]) ? COOP_YES : COOP_NO;
	case SYS_ppoll:
#ifdef SYS_poll
	case SYS_poll:
#endif
		return in_poll(input, pid, args);
	case SYS_pselect6:
#ifdef SYS_select
	case SYS_select:
#endif
		return in_select(input, pid, args);
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
#ifdef SYS_epoll_wait
	case SYS_epoll_wait:
#endif
		return in_epoll(input, pid, (int)args[0]);
	default:
		return COOP_NO;
	}
}

static enum coop_known thread_blocked(const struct input *input, pid_t pid, const char *thread)
{
	char path[320], text[256];
	unsigned long long args[6];
	long call;

	(void)snprintf(path, sizeof path, "/proc/%d/task/%s/syscall", pid, thread);
	COOP_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (n < 0)
		return COOP_UNKNOWN; /* not ours to look at: another user's, or not dumpable */
	text[n] = 0;
	if (sscanf(text, "%ld %llx %llx %llx %llx %llx %llx", &call, &args[0], &args[1], &args[2],
		   &args[3], &args[4], &args[5]) != 7)
		return COOP_NO; /* "running", or outside any call */
	uint64_t values[6];
	for (int i = 0; i < 6; i++)
		values[i] = args[i];
	return in_call(input, pid, call, values);
}

static void look_at(void *user, const struct coop_proc *proc)
{
	struct search *search = user;
	char path[64];
	const struct dirent *item;
	int looked = 0;

	if (search->answer == COOP_YES || proc->state != 'S')
		return;
	(void)snprintf(path, sizeof path, "/proc/%d/task", proc->pid);
	DIR *threads = opendir(path);
	while (threads && (item = readdir(threads)) && looked < THREADS_MAX) {
		if (*item->d_name == '.')
			continue;
		looked++;
		enum coop_known known = thread_blocked(&search->input, proc->pid, item->d_name);
		if (known == COOP_YES || (known == COOP_UNKNOWN && search->answer == COOP_NO))
			search->answer = known;
	}
	if (threads)
		(void)closedir(threads);
}

enum coop_known coop_blocked_on_stdin(const struct coop_process *process)
{
	struct search search = {.answer = COOP_NO};
	const struct coop_stdin *in = &process->output.input;
	struct stat st;
	int unread = 0;

	if (!coop_process_live(process) || !in->open || in->fd < 0)
		return COOP_NO;
	if (in->terminal) {
		int number;
		if (ioctl(in->fd, TIOCGPTN, &number) < 0)
			return COOP_UNKNOWN;
		search.input.terminal = true;
		(void)snprintf(search.input.name, sizeof search.input.name, "/dev/pts/%d", number);
	} else {
		/* Bytes that wait in the pipe will be read: it is not blocked for want of input. */
		if (fstat(in->fd, &st) < 0 || ioctl(in->fd, FIONREAD, &unread) < 0)
			return COOP_UNKNOWN;
		(void)snprintf(search.input.name, sizeof search.input.name, "pipe:[%llu]",
			       (unsigned long long)st.st_ino);
	}
	if (unread > 0)
		return COOP_NO;
	if (coop_tree_look_lately(process->keeper) < 0)
		return COOP_UNKNOWN;
	coop_tree_each(process->keeper, process, look_at, &search);
	return search.answer;
}

/* Without echo, and line by line: so programs ask for a password. */
enum coop_known coop_blocked_echo_off(const struct coop_process *process)
{
	struct termios settings;

	if (!process->terms.pty || process->output.input.fd < 0 ||
	    tcgetattr(process->output.input.fd, &settings) < 0)
		return COOP_UNKNOWN;
	if (settings.c_lflag & ECHO)
		return COOP_NO;
	return settings.c_lflag & ICANON ? COOP_YES : COOP_UNKNOWN;
}
