#include "doors/cli/serve/serve_child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

#define SECOND UINT64_C(1000000000)
#define CHILD_FDS_MAX 64
/* Where descriptors wait until the numbers below are free for them. */
#define CHILD_FDS_WAIT 128

/* Puts the descriptors where the program expects them, with `report` behind them. They are lifted
 * first, because any of them may have the number of another. */
static int place_fds(const struct cli_serve_program *program, int report)
{
	int lifted[CHILD_FDS_MAX + 1];
	const size_t count = program->fd_count;
	if (count > CHILD_FDS_MAX)
		return -E2BIG;
	for (size_t i = 0; i <= count; i++) {
		lifted[i] = fcntl(i < count ? program->fds[i] : report, F_DUPFD_CLOEXEC,
				  CHILD_FDS_WAIT);
		if (lifted[i] < 0)
			return -errno;
	}
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
		return -errno;
	for (size_t i = 0; i <= count; i++)
		if (dup2(lifted[i], COOP_CHILD_FD + (int)i) < 0)
			return -errno;
	const int last = COOP_CHILD_FD + (int)count;
	(void)fcntl(last, F_SETFD, FD_CLOEXEC);
	return close_range((unsigned)last + 1, ~0u, 0) < 0 ? -errno : last;
}

static void raise_files(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static void reset_signals(void)
{
	sigset_t none;
	for (int number = 1; number < NSIG; number++)
		(void)signal(number, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Runs in the child, which is a copy of a program with one thread. Returns only on failure. */
static int become(const struct cli_serve_program *program, pid_t parent, int *report)
{
	int r = place_fds(program, *report);
	if (r < 0)
		return r;
	*report = r;
	(void)setsid();
	if (program->folder && chdir(program->folder) < 0)
		return -errno;
	if (program->many_files)
		raise_files();
	if (program->dies_along) {
		(void)prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
		/* It died before the signal was armed. */
		if (getppid() != parent)
			_exit(1);
	}
	reset_signals();
	(void)execve(program->path, program->argv, program->env);
	return -errno;
}

static void reap(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

int cli_serve_child_start(const struct cli_serve_program *program, struct coop_child *ret)
{
	int ends[2], why = 0;
	ssize_t n;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	COOP_AUTO_FD int reader = ends[0];
	COOP_AUTO_FD int writer = ends[1];
	const pid_t parent = getpid(), pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		int r = become(program, parent, &writer);
		(void)!write(writer, &r, sizeof r);
		_exit(1);
	}
	(void)close(COOP_TAKE_FD(writer));
	/* The end of file is the execution. */
	do
		n = read(reader, &why, sizeof why);
	while (n < 0 && errno == EINTR);
	const int pidfd = n == 0 ? pidfd_open(pid, 0) : -1;
	if (pidfd < 0) {
		const int r = n > 0 ? why : -errno;
		reap(pid);
		return r;
	}
	*ret = (struct coop_child){.pid = pid, .pidfd = pidfd};
	return 0;
}

void cli_serve_child_end_text(int status, char ret_text[CLI_SERVE_END_TEXT])
{
	if (WIFEXITED(status))
		(void)snprintf(ret_text, CLI_SERVE_END_TEXT, "exit code %d", WEXITSTATUS(status));
	else
		(void)snprintf(ret_text, CLI_SERVE_END_TEXT, "signal %d", WTERMSIG(status));
}

uint64_t cli_serve_deaths_add(struct cli_serve_deaths *deaths, uint64_t now)
{
	if (deaths->count == CLI_SERVE_DEATHS)
		memmove(deaths->at, deaths->at + 1, sizeof(deaths->at) - sizeof(deaths->at[0]));
	else
		deaths->count++;
	deaths->at[deaths->count - 1] = now;
	const bool often = deaths->count == CLI_SERVE_DEATHS && now - deaths->at[0] < 10 * SECOND;
	return often ? now + SECOND : now;
}
