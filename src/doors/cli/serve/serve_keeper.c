#include "doors/cli/serve/serve_keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io/claim.h"
#include "base/io/log.h"
#include "base/io/paths.h"
#include "client/child.h"
#include "client/locate.h"
#include "coop.h"
#include "doors/cli/record.h"

#define SECOND UINT64_C(1000000000)
#define START_PATIENCE (30 * SECOND)
#define END_PATIENCE_MS 20000
#define OTHER_LOOK (SECOND / 10) /* between looks for a keeper that somebody else is starting */

void cli_serve_keeper_init(struct cli_serve_keeper *keeper, struct cli *cli)
{
	*keeper = (struct cli_serve_keeper){
		.cli = cli, .child.pidfd = -1, .ready_fd = -1, .lock_fd = -1};
}

/* Looks up what is needed of a keeper that has just been connected to. */
static int adopt(struct cli_serve_keeper *keeper, struct coop_error *error)
{
	json_t *info = NULL;
	int r = cli_call(keeper->cli, "info", json_object(), &info, error);
	if (r < 0)
		return r;
	const char *gate = cli_text(info, "gate");
	const bool known = json_object_get(info, "gate");
	(void)snprintf(keeper->gate, sizeof(keeper->gate), "%s", gate);
	(void)snprintf(keeper->state_dir, sizeof(keeper->state_dir), "%s",
		       cli_text(info, "state_dir"));
	json_decref(info);
	if (*keeper->gate) {
		coop_log(COOP_LOG_INFO, "keeper pid=%d %s", coop_keeper_pid(keeper->cli->coop),
			 keeper->child.pid ? "started" : "found");
		keeper->fresh = true;
		return 0;
	}
	cli_error(error, "unreachable",
		  known ? "the keeper has no gate for gateways: its log says why (a path of its "
			  "socket that is too long: set COOP_SOCKET)"
			: "the keeper that runs is of a version that serves no gateways: coop "
			  "shutdown ends it");
	return -ENOTSUP;
}

/* -ECONNREFUSED: none is running. */
static int connect_running(struct cli_serve_keeper *keeper, struct coop_error *error)
{
	const struct coop_options options = {.no_start = true, .token = ""};
	int r = coop_open(&options, &keeper->cli->coop, error);
	if (r < 0)
		return r;
	r = adopt(keeper, error);
	if (r < 0)
		cli_close(keeper->cli);
	return r;
}

/* Somebody else is starting a keeper, which does not listen yet: ours would only be turned away. */
static bool other_starts(void)
{
	char path[sizeof(((struct cli_serve_keeper *)0)->gate)], claim[sizeof(path) + 8];
	pid_t pid;
	if (coop_paths_socket(path, sizeof(path)) < 0)
		return false;
	(void)snprintf(claim, sizeof(claim), "%s.pid", path);
	return coop_claim_held(claim, &pid);
}

/* It is looked for again in a moment, as no event tells that it listens. */
static int wait_for_other(struct cli_serve_keeper *keeper, struct coop_error *error)
{
	const uint64_t now = coop_clock_now();
	if (!keeper->other_until) {
		keeper->other_until = now + START_PATIENCE;
		coop_log(COOP_LOG_INFO, "another keeper is starting: it is waited for");
	}
	if (now < keeper->other_until) {
		keeper->again_at = now + OTHER_LOOK;
		return 0;
	}
	keeper->other_until = 0;
	cli_error(error, "unreachable", "another keeper is starting, and does not come up");
	return -ETIMEDOUT;
}

/* The same lock as of clients that start one on demand. */
static int lock_start(int *ret_fd, struct coop_error *error)
{
	char path[sizeof(((struct cli_serve_keeper *)0)->gate)], lock[sizeof(path) + 8], why[256];
	int r = coop_paths_socket(path, sizeof(path));
	if (r < 0) {
		cli_error(error, "unreachable", "the path of the keeper's socket is too long");
		return r;
	}
	r = coop_paths_make_parent(path);
	if (r < 0) {
		coop_paths_explain_parent(path, r, why, sizeof(why));
		cli_error(error, "unreachable", "the keeper's socket %s cannot be there: %s", path,
			  why);
		return r;
	}
	(void)snprintf(lock, sizeof(lock), "%s.start", path);
	COOP_AUTO_FD int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	do
		r = fd < 0 ? -1 : flock(fd, LOCK_EX);
	while (r < 0 && errno == EINTR);
	if (r < 0) {
		cli_error(error, "unreachable", "cannot lock %s: %s", lock, strerror(errno));
		return -errno;
	}
	*ret_fd = COOP_TAKE_FD(fd);
	return 0;
}

/* Runs coop-keeper in the foreground. It dies along with us: nobody would ever end it otherwise. */
static int start_own(struct cli_serve_keeper *keeper, struct coop_error *error)
{
	char program[COOP_PATHS_MAX];
	char name[] = "coop-keeper", foreground[] = "--foreground", ready[] = "--ready",
	     number[] = "3";
	char *argv[] = {name, foreground, ready, number, NULL};
	int ends[2];
	int r = coop_locate_program("coop-keeper", "COOP_KEEPER", program, sizeof(program));
	if (r < 0) {
		cli_error(error, "unreachable",
			  "cannot find the program coop-keeper (it belongs "
			  "beside coop, in ../libexec/coop or in PATH)");
		return r;
	}
	r = pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0 ? -errno : 0;
	if (r == 0) {
		COOP_AUTO_FD int writer = ends[1];
		r = cli_serve_child_start(&(struct cli_serve_program){.path = program,
								      .argv = argv,
								      .env = environ,
								      .fds = &writer,
								      .fd_count = 1,
								      .dies_along = true},
					  &keeper->child);
		if (r < 0)
			(void)close(ends[0]);
	}
	if (r < 0) {
		cli_error(error, "unreachable", "cannot start %s: %s", program, strerror(-r));
		return r;
	}
	keeper->ready_fd = ends[0];
	keeper->said_size = 0;
	keeper->deadline = coop_clock_now() + START_PATIENCE;
	return 0;
}

/* Connects, or starts one: that goes on in step(). */
static int attempt(struct cli_serve_keeper *keeper, struct coop_error *error)
{
	COOP_AUTO_FD int lock = -1;
	int r = connect_running(keeper, error);
	if (r == -ECONNREFUSED && other_starts())
		return wait_for_other(keeper, error);
	keeper->other_until = 0;
	if (r != -ECONNREFUSED)
		return r;
	r = lock_start(&lock, error);
	if (r < 0)
		return r;
	/* Somebody else may have started one while we waited for the lock. */
	r = connect_running(keeper, error);
	if (r != -ECONNREFUSED)
		return r;
	r = start_own(keeper, error);
	if (r == 0)
		keeper->lock_fd = COOP_TAKE_FD(lock);
	return r;
}

int cli_serve_keeper_begin(struct cli_serve_keeper *keeper, struct coop_error *error)
{
	return attempt(keeper, error);
}

static void stop_starting(struct cli_serve_keeper *keeper)
{
	if (keeper->ready_fd >= 0)
		(void)close(COOP_TAKE_FD(keeper->ready_fd));
	if (keeper->lock_fd >= 0)
		(void)close(COOP_TAKE_FD(keeper->lock_fd));
}

/* Ours has told how its start went; `said` is not NUL-terminated yet. */
static int started(struct cli_serve_keeper *keeper, struct coop_error *error)
{
	keeper->said[keeper->said_size] = '\0';
	stop_starting(keeper);
	const bool good = strcmp(keeper->said, "ready") == 0;
	if (!good)
		coop_child_end(&keeper->child, 2000);
	/* One that could not start because another one was quicker is no loss. */
	int r = connect_running(keeper, error);
	if (r == -ECONNREFUSED && !good && other_starts())
		return wait_for_other(keeper, error);
	if (r < 0 && !good)
		cli_error(error, "unreachable", "cannot start the keeper: %s",
			  keeper->said_size ? keeper->said : "it ended; what it said stands above");
	return r;
}

/* 0 while it is still starting. */
static int hear(struct cli_serve_keeper *keeper, uint64_t now, struct coop_error *error)
{
	const size_t room = sizeof(keeper->said) - 1 - keeper->said_size;
	ssize_t n = read(keeper->ready_fd, keeper->said + keeper->said_size, room);
	if (n > 0) {
		keeper->said_size += (size_t)n;
		return 0;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		if (now < keeper->deadline)
			return 0;
		keeper->said_size =
			(size_t)snprintf(keeper->said, sizeof(keeper->said), "it does not come up");
		(void)pidfd_send_signal(keeper->child.pidfd, SIGKILL, NULL, 0);
	}
	return started(keeper, error);
}

/* The connection has ended. Only the end of the process itself says that its place is free; but it
 * may also live on. */
static void lost(struct cli_serve_keeper *keeper, uint64_t now)
{
	struct coop_error error;
	cli_close(keeper->cli);
	keeper->gate[0] = '\0';
	if (connect_running(keeper, &error) == 0)
		return;
	coop_log(COOP_LOG_WARN, "the keeper is gone");
	if (!keeper->child.pid)
		keeper->again_at = cli_serve_deaths_add(&keeper->deaths, now);
}

size_t cli_serve_keeper_poll(const struct cli_serve_keeper *keeper, struct pollfd *ret)
{
	size_t count = 0;
	if (keeper->cli->coop)
		ret[count++] = (struct pollfd){.fd = coop_fd(keeper->cli->coop),
					       .events = coop_poll_events(keeper->cli->coop)};
	if (keeper->ready_fd >= 0)
		ret[count++] = (struct pollfd){.fd = keeper->ready_fd, .events = POLLIN};
	if (keeper->child.pid)
		ret[count++] = (struct pollfd){.fd = keeper->child.pidfd, .events = POLLIN};
	return count;
}

uint64_t cli_serve_keeper_due(const struct cli_serve_keeper *keeper)
{
	if (keeper->ready_fd >= 0)
		return keeper->deadline;
	return keeper->closing ? 0 : keeper->again_at;
}

int cli_serve_keeper_step(struct cli_serve_keeper *keeper, uint64_t now, struct coop_error *error)
{
	int status, r = 0;
	if (keeper->cli->coop && coop_dispatch(keeper->cli->coop, NULL) < 0)
		lost(keeper, now);
	if (keeper->ready_fd >= 0) {
		r = hear(keeper, now, error);
	} else if (keeper->child.pid && coop_child_wait(&keeper->child, 0, &status) == 0) {
		char text[CLI_SERVE_END_TEXT];
		cli_serve_child_end_text(status, text);
		coop_log(COOP_LOG_WARN, "the keeper ended with %s", text);
		keeper->again_at = cli_serve_deaths_add(&keeper->deaths, now);
	}
	if (r == 0 && !keeper->closing && keeper->again_at && now >= keeper->again_at &&
	    !keeper->cli->coop) {
		keeper->again_at = 0;
		r = attempt(keeper, error);
	}
	if (r < 0)
		keeper->again_at = now + SECOND;
	else if (keeper->cli->coop)
		keeper->again_at = 0;
	return r;
}

int cli_serve_keeper_connect(const struct cli_serve_keeper *keeper)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (!*keeper->gate)
		return -ECONNREFUSED;
	memcpy(address.sun_path, keeper->gate, sizeof(address.sun_path));
	/* A full queue is told to the one who asks: waiting for it would hold up all others. */
	COOP_AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return COOP_TAKE_FD(fd);
}

void cli_serve_keeper_end(struct cli_serve_keeper *keeper)
{
	cli_close(keeper->cli);
	stop_starting(keeper);
	if (keeper->child.pid)
		(void)pidfd_send_signal(keeper->child.pidfd, SIGTERM, NULL, 0);
	coop_child_end(&keeper->child, END_PATIENCE_MS);
}
