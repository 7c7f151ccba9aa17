#include "sandbox/apply.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"
#define CANDIDATE_MAX 4096

static void tell(int status, enum coop_plan_step step, int value)
{
	struct coop_plan_status message = {.step = (int32_t)step, .value = value};
	ssize_t n;

	do
		n = write(status, &message, sizeof message);
	while (n < 0 && errno == EINTR);
}

_Noreturn static void fail(int status, enum coop_plan_step step)
{
	int error = errno;

	tell(status, step, error);
	_exit(step == COOP_STEP_EXEC && error == ENOENT ? 127 : 126);
}

/* Dies with the keeper. The signal is armed first and the keeper looked for afterwards: an exiting process closes its
 * files before its children are given away, so either the poll sees the broken pipe or the signal comes. */
static void die_with_keeper(int status)
{
	struct pollfd keeper = {.fd = status, .events = 0};

	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		fail(status, COOP_STEP_DEATH_SIGNAL);
	if (poll(&keeper, 1, 0) > 0 && (keeper.revents & POLLERR))
		_exit(126);
}

/* Where the hard limit is too low it goes without, and is known by its session alone. */
static void set_mark(uint64_t mark)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_LOCKS, &limit) < 0)
		return;
	limit.rlim_cur = mark;
	(void)setrlimit(RLIMIT_LOCKS, &limit);
}

static void *map(size_t size, int fd)
{
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_PRIVATE;

	return mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
}

/* Lays out `count` pointers to the strings at *text and moves *text behind them. */
static char **point(char **vector, uint32_t count, char **text, const char *end)
{
	for (uint32_t i = 0; i < count; i++) {
		vector[i] = *text;
		char *nul = memchr(*text, 0, (size_t)(end - *text));
		if (!nul)
			return NULL;
		*text = nul + 1;
	}
	vector[count] = NULL;
	return vector + count + 1;
}

struct command {
	char **argv, **envp;
};

static struct command unpack(const struct coop_plan *plan, char *body, int status)
{
	size_t pointers = (size_t)plan->argc + plan->envc + 2;
	/* One more in front: room for "sh", should the program turn out to have no header. */
	char **vector = map((pointers + 1) * sizeof(char *), -1);
	char *text = body, *end = body + plan->body_size;

	if (vector == MAP_FAILED)
		fail(status, COOP_STEP_BODY);
	struct command command = {.argv = vector + 1};
	command.envp = point(command.argv, plan->argc, &text, end);
	if (!command.envp || !point(command.envp, plan->envc, &text, end)) {
		errno = EPROTO;
		fail(status, COOP_STEP_BODY);
	}
	return command;
}

static const char *search_path(char *const *envp)
{
	for (; *envp; envp++) {
		if (!strncmp(*envp, "PATH=", 5))
			return *envp + 5;
	}
	return DEFAULT_PATH;
}

/* A text file without #! is run by the shell, as every shell and execvp do. */
static void execute(const char *path, const struct command *command)
{
	execve(path, command->argv, command->envp);
	if (errno != ENOEXEC)
		return;
	char **argv = command->argv - 1;
	char shell[] = "/bin/sh";
	char *script = command->argv[0];
	argv[0] = shell;
	argv[1] = (char *)(uintptr_t)path;
	execve(shell, argv, command->envp);
	argv[1] = script;
	errno = ENOEXEC;
}

static void execute_from_path(const struct command *command)
{
	const char *name = command->argv[0], *path = search_path(command->envp);
	size_t name_size = strlen(name);
	char candidate[CANDIDATE_MAX];
	bool denied = false;

	if (name_size >= sizeof candidate) {
		errno = ENAMETOOLONG;
		return;
	}
	for (const char *end; path; path = *end ? end + 1 : NULL) {
		end = strchrnul(path, ':');
		size_t size = (size_t)(end - path);
		if (size + name_size + 2 > sizeof candidate)
			continue;
		memcpy(candidate, path, size);
		if (size)
			candidate[size++] = '/';
		memcpy(candidate + size, name, name_size + 1);
		execute(candidate, command);
		/* A folder that may not be searched says EACCES too: that is no sign of a program. */
		if (errno == EACCES)
			denied = denied || access(candidate, F_OK) == 0;
		else if (errno != ENOENT && errno != ENOTDIR)
			return;
	}
	errno = denied ? EACCES : ENOENT;
}

_Noreturn void coop_apply(const struct coop_plan *plan, const char *body, const int *fds)
{
	int status = fds[COOP_PLAN_FD_STATUS];

	tell(status, COOP_STEP_CLONED, (int)syscall(SYS_getpid));
	die_with_keeper(status);
	char *text = (char *)(uintptr_t)body;
	if (plan->flags & COOP_PLAN_BODY_FD) {
		text = map(plan->body_size, fds[COOP_PLAN_FD_BODY]);
		if (text == MAP_FAILED)
			fail(status, COOP_STEP_BODY);
	}
	struct command command = unpack(plan, text, status);
	set_mark(plan->mark);
	if (setsid() < 0)
		fail(status, COOP_STEP_SESSION);
	if ((plan->flags & COOP_PLAN_TERMINAL) && ioctl(fds[COOP_PLAN_FD_STDIN], TIOCSCTTY, 0) < 0)
		fail(status, COOP_STEP_TERMINAL);
	for (int i = 0; i < 3; i++) {
		if (dup2(fds[i], i) < 0)
			fail(status, COOP_STEP_STDIO);
	}
	if (fchdir(fds[COOP_PLAN_FD_CWD]) < 0)
		fail(status, COOP_STEP_CHDIR);
	if (syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC) < 0)
		fail(status, COOP_STEP_CLOSE_FDS);
	if (strchr(command.argv[0], '/'))
		execute(command.argv[0], &command);
	else
		execute_from_path(&command);
	fail(status, COOP_STEP_EXEC);
}
