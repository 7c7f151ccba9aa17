#include "keeper/start/spawn_fds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "keeper/confine/confine.h"
#include "keeper/core/keeper.h"
#include "keeper/output/stream.h"
#include "keeper/process/process.h"
#include "keeper/start/spawn.h"
#include "sandbox/plan/plan.h"

/* A pipe of which end `ours` (0 or 1) is the keeper's: non-blocking and close-on-exec. The other is
 * only close-on-exec, until the child duplicates it. 0 or -errno. */
static int open_pipe(const struct coop_keeper *keeper, int ours, int *ret_ours, int *ret_theirs)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	if (!coop_keeper_fd_allowed(keeper, ends[1]) ||
	    fcntl(ends[ours], F_SETFL, O_NONBLOCK) < 0) {
		(void)close(ends[0]);
		(void)close(ends[1]);
		return -EMFILE;
	}
	*ret_ours = ends[ours];
	*ret_theirs = ends[!ours];
	return 0;
}

static int make_terminal(struct coop_process *process, int *ret_master, int *ret_slave)
{
	struct winsize size = {.ws_col = process->terms.cols, .ws_row = process->terms.rows};
	COOP_AUTO_FD int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);

	if (master < 0 || unlockpt(master) < 0 || ioctl(master, TIOCSWINSZ, &size) < 0)
		return -errno;
	int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (slave < 0)
		return -errno;
	if (!coop_keeper_fd_allowed(process->keeper, slave)) {
		(void)close(slave);
		return -EMFILE;
	}
	*ret_master = COOP_TAKE_FD(master);
	*ret_slave = slave;
	return 0;
}

/* All three are the same terminal; a duplicate each, so that each is closed for itself. */
static int open_terminal(struct coop_spawn *spawn)
{
	struct coop_process *process = spawn->process;
	int master = -1, slave = -1, r = make_terminal(process, &master, &slave);

	if (r < 0)
		return r;
	spawn->fds[COOP_PLAN_FD_STDIN] = slave;
	spawn->fds[COOP_PLAN_FD_STDOUT] = fcntl(slave, F_DUPFD_CLOEXEC, 3);
	spawn->fds[COOP_PLAN_FD_STDERR] = fcntl(slave, F_DUPFD_CLOEXEC, 3);
	r = coop_stream_open(&process->output.streams[0], master);
	if (r == 0) {
		process->output.input.fd = master;
		process->output.input.terminal = true;
		process->output.input.open = true;
	}
	return r < 0 || spawn->fds[COOP_PLAN_FD_STDERR] >= 0 ? r : -EMFILE;
}

static int open_pipes(struct coop_spawn *spawn, bool with_stdin)
{
	struct coop_process *process = spawn->process;
	int ours, r;

	if (with_stdin) {
		r = open_pipe(process->keeper, 1, &process->output.input.fd,
			      &spawn->fds[COOP_PLAN_FD_STDIN]);
		process->output.input.open = r == 0;
	} else {
		spawn->fds[COOP_PLAN_FD_STDIN] =
			fcntl(coop_place_of(process->keeper)->null_fd, F_DUPFD_CLOEXEC, 3);
		r = spawn->fds[COOP_PLAN_FD_STDIN] < 0 ? -errno : 0;
	}
	for (int i = 0; r == 0 && i < process->output.count; i++) {
		r = open_pipe(process->keeper, 0, &ours, &spawn->fds[COOP_PLAN_FD_STDOUT + i]);
		if (r == 0)
			r = coop_stream_open(&process->output.streams[i], ours);
	}
	if (r == 0 && process->output.count == 1) {
		spawn->fds[COOP_PLAN_FD_STDERR] =
			fcntl(spawn->fds[COOP_PLAN_FD_STDOUT], F_DUPFD_CLOEXEC, 3);
		r = spawn->fds[COOP_PLAN_FD_STDERR] < 0 ? -errno : 0;
	}
	return r;
}

/* They belong to whom the command runs as, so that it can open /dev/stdout and the like. The one
 * that stands for no input is nobody's. */
static int give_away(const struct coop_spawn *spawn, bool with_stdin)
{
	const struct coop_launcher_class *whose = &spawn->process->confine->launcher;

	for (int i = COOP_PLAN_FD_STDIN; whose->other_ids && i <= COOP_PLAN_FD_STDERR; i++) {
		if ((i != COOP_PLAN_FD_STDIN || with_stdin) &&
		    fchown(spawn->fds[i], whose->uid, whose->gid) < 0)
			return -errno;
	}
	return 0;
}

int coop_spawn_fds_open(struct coop_spawn *spawn, bool with_stdin)
{
	int r = spawn->process->terms.pty ? open_terminal(spawn) : open_pipes(spawn, with_stdin);

	return r < 0 ? r : give_away(spawn, with_stdin || spawn->process->terms.pty);
}

/* May be called twice: what was given away is -1. */
void coop_spawn_fds_close(struct coop_spawn *spawn)
{
	for (size_t i = 0; i < COOP_LAUNCH_FDS_MAX; i++) {
		if (spawn->fds[i] >= 0)
			(void)close(spawn->fds[i]);
		spawn->fds[i] = -1;
	}
}

size_t coop_spawn_plan_fds(const struct coop_spawn *spawn, int *ret)
{
	const struct coop_plan *plan =
		(const struct coop_plan *)(const void *)coop_buf_front(&spawn->launch.message);
	bool all = plan->kind == COOP_PLAN_SPAWN;
	size_t count = 0;

	/* Without gaps: the plan's flags say which there are. */
	for (size_t i = 0; i < COOP_LAUNCH_FDS_MAX; i++) {
		bool sandbox = i == COOP_PLAN_FD_CHANNEL || i == COOP_PLAN_FD_NET;
		if (!all && !sandbox && i < COOP_PLAN_FD_BODY)
			ret[count++] = coop_place_of(spawn->process->keeper)->null_fd;
		else if (spawn->fds[i] >= 0 && (all || sandbox))
			ret[count++] = spawn->fds[i];
	}
	return count;
}

/* What the sandbox was made with is there already; these are the command's. */
size_t coop_spawn_rest_fds(const struct coop_spawn *spawn, int *ret)
{
	size_t count = 0;

	for (size_t i = 0; i < COOP_LAUNCH_FDS_MAX; i++) {
		bool command = i < COOP_PLAN_FD_CHANNEL || i == COOP_PLAN_FD_BODY ||
			       i >= COOP_PLAN_FD_PROGRAM;
		if (spawn->fds[i] >= 0 && command)
			ret[count++] = spawn->fds[i];
	}
	return count;
}
