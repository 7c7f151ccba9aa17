/* Starting this user's keeper on demand (docs/PROTOCOL.md section 1): ten clients at once start
 * one. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io/claim.h"
#include "base/io/paths.h"
#include "client/child.h"
#include "client/client.h"
#include "client/locate.h"

#define SOCKET_VARIABLE "COOP_SOCKET="
#define OTHER_LOOK_MS 20 /* between looks for a keeper that somebody else is starting */

/* Held until the fd is closed, that is, until the keeper listens or has failed to. */
static int take_start_lock(const char *path, struct coop_error *error)
{
	char lock[COOP_PATHS_MAX], why[256];
	int r = coop_paths_make_parent(path);

	if (r < 0) {
		coop_paths_explain_parent(path, r, why, sizeof why);
		return coop_client_fail(error, r, "unreachable",
					"the keeper's socket %s cannot be there: %s (or set "
					"COOP_SOCKET to a path in a folder of yours)",
					path, why);
	}
	(void)snprintf(lock, sizeof lock, "%s.start", path);
	COOP_AUTO_FD int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	do
		r = fd < 0 ? -1 : flock(fd, LOCK_EX);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return coop_client_fail(error, -errno, "unreachable", "cannot lock %s: %s", lock,
					strerror(errno));
	return COOP_TAKE_FD(fd);
}

static bool somebody_listens(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	COOP_AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return false;
	(void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	/* EAGAIN: the backlog is full, so there is somebody. */
	return connect(fd, (struct sockaddr *)&address, sizeof address) == 0 || errno == EAGAIN;
}

static int find_keeper(const struct coop_options *options, char *ret_path, size_t size)
{
	int n;

	if (!options->keeper)
		return coop_locate_program("coop-keeper", "COOP_KEEPER", ret_path, size);
	n = snprintf(ret_path, size, "%s", options->keeper);
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

/* Runs `coop-keeper --daemon`, which leaves when its child listens. *ret_lost: whether it failed
 * because it found another keeper, which listens or is about to. */
static int run_daemon(const char *program, const char *path, bool *ret_lost,
		      struct coop_error *error)
{
	char entry[sizeof SOCKET_VARIABLE + sizeof((struct sockaddr_un){0}).sun_path];
	char line[400];
	int status = 0;
	struct coop_child child;
	char name[] = "coop-keeper", option[] = "--daemon";
	char *argv[] = {name, option, NULL};

	(void)snprintf(entry, sizeof entry, SOCKET_VARIABLE "%s", path);
	COOP_AUTO_FREE char **env = coop_client_environment(entry);
	COOP_AUTO_FD int errors = coop_child_error_file();
	if (!env || errors < 0)
		return coop_client_fail(error, env ? errors : -ENOMEM, "unreachable",
					"cannot start the keeper: %s",
					strerror(env ? -errors : ENOMEM));
	int r = coop_child_start(&(struct coop_child_plan){.program = program,
							   .argv = argv,
							   .env = env,
							   .error_fd = errors,
							   .pass_fd = -1},
				 &child);
	if (r < 0)
		return coop_client_fail(error, r, "unreachable", "cannot start %s: %s", program,
					strerror(-r));
	r = coop_child_wait(&child, COOP_CLIENT_PATIENCE_MS, &status);
	if (r < 0) {
		coop_child_end(&child, 0);
		return coop_client_fail(error, r, "unreachable", "%s does not come up", program);
	}
	/* -1: the embedding program reaped it; whether it worked is seen on connecting. */
	if (status == 0 || status == -1)
		return 0;
	coop_child_error_line(errors, line, sizeof line);
	*ret_lost = WIFEXITED(status) && WEXITSTATUS(status) == COOP_CLAIM_LOST;
	return coop_client_fail(error, -ECONNREFUSED, "unreachable", "cannot start the keeper: %s",
				line[0] ? line : "it ended without a word");
}

static bool other_lives(const char *path)
{
	char claim[COOP_PATHS_MAX];
	pid_t pid;

	(void)snprintf(claim, sizeof claim, "%s.pid", path);
	return coop_claim_held(claim, &pid);
}

/* A keeper that somebody else started was quicker than ours, which has left, and is to listen soon:
 * no event tells of that, nor of its end. False: it has ended, or time is up. */
static bool other_comes_up(const char *path, uint64_t deadline)
{
	while (!somebody_listens(path)) {
		if (!other_lives(path) || coop_clock_now() >= deadline)
			return false;
		(void)poll(NULL, 0, OTHER_LOOK_MS);
	}
	return true;
}

int coop_client_start(const char *path, const struct coop_options *options,
		      struct coop_error *error)
{
	char program[COOP_PATHS_MAX];
	const uint64_t deadline = coop_clock_now() + COOP_CLIENT_PATIENCE_MS * UINT64_C(1000000);
	COOP_AUTO_FD int lock = take_start_lock(path, error);

	if (lock < 0)
		return lock;
	if (somebody_listens(path))
		return 0;
	int r = find_keeper(options, program, sizeof program);
	if (r < 0)
		return coop_client_fail(error, r, "unreachable",
					"cannot find the program coop-keeper; set COOP_KEEPER to "
					"its path");
	/* One that was started by hand, or by a client that was killed meanwhile, may have come
	 * first; it is used, or replaced if it does not come up. */
	for (bool lost = true; lost;) {
		lost = false;
		r = run_daemon(program, path, &lost, error);
		if (r == 0 || other_comes_up(path, deadline))
			return 0;
		lost = lost && coop_clock_now() < deadline;
	}
	return r;
}
