#include "client/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

#define ERROR_FILE_SIZE 4096

static int set_attributes(posix_spawnattr_t *attributes, bool new_session)
{
	short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
	sigset_t none, all;
	int r;

	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	if (new_session)
		flags = (short)(flags | POSIX_SPAWN_SETSID);
	r = posix_spawnattr_setsigmask(attributes, &none);
	if (!r)
		r = posix_spawnattr_setsigdefault(attributes, &all);
	if (!r)
		r = posix_spawnattr_setflags(attributes, flags);
	return -r;
}

static int set_actions(posix_spawn_file_actions_t *actions, int error_fd, int pass_fd)
{
	int r = posix_spawn_file_actions_addopen(actions, 0, "/dev/null", O_RDWR, 0);

	if (!r)
		r = posix_spawn_file_actions_adddup2(actions, 0, 1);
	if (!r)
		r = posix_spawn_file_actions_adddup2(actions, error_fd, 2);
	if (!r && pass_fd >= 0)
		r = posix_spawn_file_actions_adddup2(actions, pass_fd, COOP_CHILD_FD);
	if (!r)
		r = posix_spawn_file_actions_addclosefrom_np(
			actions, pass_fd >= 0 ? COOP_CHILD_FD + 1 : COOP_CHILD_FD);
	return -r;
}

/* The actions above overwrite 0 to 3 one after another; a host without stdio may have our
 * sources there. */
static int lift(int fd)
{
	int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, COOP_CHILD_FD + 1);

	return high < 0 && fd >= 0 ? -errno : high;
}

static int spawn(const struct coop_child_plan *plan, int error_fd, int pass_fd, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	int r = -posix_spawn_file_actions_init(&actions);

	if (r < 0)
		return r;
	r = -posix_spawnattr_init(&attributes);
	if (r == 0) {
		r = set_attributes(&attributes, plan->new_session);
		if (r == 0)
			r = set_actions(&actions, error_fd, pass_fd);
		if (r == 0)
			r = -posix_spawn(ret_pid, plan->program, &actions, &attributes, plan->argv,
					 plan->env);
		(void)posix_spawnattr_destroy(&attributes);
	}
	(void)posix_spawn_file_actions_destroy(&actions);
	return r;
}

int coop_child_start(const struct coop_child_plan *plan, struct coop_child *ret)
{
	COOP_AUTO_FD int error_fd = lift(plan->error_fd);
	COOP_AUTO_FD int pass_fd = lift(plan->pass_fd);
	pid_t pid = 0;

	if (error_fd < 0)
		return error_fd;
	if (pass_fd < -1)
		return pass_fd;
	int r = spawn(plan, error_fd, pass_fd, &pid);
	if (r < 0)
		return r;
	int pidfd = pidfd_open(pid, 0);
	if (pidfd < 0) {
		r = -errno;
		/* Out of descriptors. Nothing could tell later when it ends, so it does not
		 * begin. */
		(void)kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		return r;
	}
	*ret = (struct coop_child){.pid = pid, .pidfd = pidfd};
	return 0;
}

/* 1 when the process has ended, 0 when time is up. */
static int wait_readable(int pidfd, int timeout_ms)
{
	uint64_t deadline = coop_clock_now() + (uint64_t)timeout_ms * 1000000u;

	for (;;) {
		uint64_t now = coop_clock_now();
		struct pollfd entry = {.fd = pidfd, .events = POLLIN};
		int left = now < deadline ? (int)((deadline - now + 999999u) / 1000000u) : 0;
		int n = poll(&entry, 1, left);
		if (n > 0)
			return 1;
		if (n == 0 && left == 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return 0;
	}
}

int coop_child_wait(struct coop_child *child, int timeout_ms, int *ret_status)
{
	siginfo_t info = {0};
	int status = -1;

	if (!wait_readable(child->pidfd, timeout_ms))
		return -ETIMEDOUT;
	/* ECHILD: the host ignores SIGCHLD or has reaped it already. Both are its right. */
	if (waitid(P_PIDFD, (id_t)child->pidfd, &info, WEXITED | WNOHANG) == 0 && info.si_pid)
		status = info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status;
	(void)close(child->pidfd);
	*child = (struct coop_child){.pidfd = -1};
	*ret_status = status;
	return 0;
}

void coop_child_end(struct coop_child *child, int timeout_ms)
{
	int status;

	if (!child->pid || coop_child_wait(child, timeout_ms, &status) == 0)
		return;
	(void)pidfd_send_signal(child->pidfd, SIGKILL, NULL, 0);
	if (coop_child_wait(child, timeout_ms, &status) == 0)
		return;
	/* Not even SIGKILL ends it now (uninterruptible sleep): init inherits it when this
	 * program ends. */
	(void)close(child->pidfd);
	*child = (struct coop_child){.pidfd = -1};
}

int coop_child_error_file(void)
{
	/* Not a pipe: nobody has to drain it, and a writer that outlives us meets no SIGPIPE.
	 * Sealed, so it stays small. */
	COOP_AUTO_FD int fd = memfd_create("coop-keeper-errors", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, ERROR_FILE_SIZE) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_GROW) < 0)
		return -errno;
	return COOP_TAKE_FD(fd);
}

void coop_child_error_line(int fd, char *ret_line, size_t size)
{
	static const char name[] = "coop-keeper: ";
	char text[ERROR_FILE_SIZE + 1];
	ssize_t n = pread(fd, text, sizeof text - 1, 0);

	text[n > 0 ? n : 0] = 0;
	/* The file is full of zeros where nothing was written. */
	for (size_t end = strlen(text); end && text[end - 1] == '\n';)
		text[--end] = 0;
	const char *newline = strrchr(text, '\n');
	const char *line = newline ? newline + 1 : text;
	if (strncmp(line, name, strlen(name)) == 0)
		line += strlen(name);
	(void)snprintf(ret_line, size, "%s", line);
}
