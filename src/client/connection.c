#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io/paths.h"
#include "base/mem.h"
#include "client/child.h"
#include "client/client.h"
#include "coop.h"

#define ATTEMPTS 3

struct coop *coop_client_new(int fd)
{
	struct coop *coop = coop_mem_zalloc(sizeof *coop);

	if (!coop)
		return NULL;
	coop->fd = fd;
	coop->child.pidfd = -1;
	coop->owner = getpid();
	coop->next_id = 1;
	return coop;
}

int coop_client_greet(struct coop *coop, struct coop_error *error)
{
	uint64_t deadline = coop_clock_now() + COOP_CLIENT_PATIENCE_MS * UINT64_C(1000000);

	while (!coop->greeted) {
		uint64_t now = coop_clock_now();
		if (now >= deadline)
			return coop_client_fail(error, -ETIMEDOUT, "unreachable",
						"the keeper does not say hello");
		int r = coop_run(coop, (int)((deadline - now) / 1000000u) + 1, error);
		if (r < 0)
			return r;
	}
	return 0;
}

static int find_socket(const struct coop_options *options, char *ret_path, size_t size,
		       struct coop_error *error)
{
	char given[sizeof((struct sockaddr_un){0}).sun_path], folder[COOP_PATHS_MAX];
	int n, r = 0;

	if (options->socket)
		n = snprintf(given, sizeof given, "%s", options->socket);
	else
		n = r = coop_paths_socket(given, sizeof given);
	if (r == 0 && n >= 0 && (size_t)n < sizeof given) {
		/* The keeper has a folder of its own, so it must be told the whole path. */
		if (given[0] == '/')
			n = snprintf(ret_path, size, "%s", given);
		else if (getcwd(folder, sizeof folder))
			n = snprintf(ret_path, size, "%s/%s", folder, given);
		else
			n = -1;
		if (n > 0 && (size_t)n < size)
			return 0;
	}
	return coop_client_fail(error, -ENAMETOOLONG, "unreachable",
				"the path of the keeper's socket is too long");
}

/* A socket in a shared folder may be a trap of another user; root's is fine, and root may go
 * where it likes. */
static bool trusted(int fd)
{
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t size = sizeof peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return false;
	return peer.uid == geteuid() || peer.uid == 0 || geteuid() == 0;
}

static int connect_to(const char *path, int *ret_fd)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	/* connect() waits while the backlog is full; this bounds it. */
	struct timeval patience = {.tv_sec = COOP_CLIENT_PATIENCE_MS / 1000};
	COOP_AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	(void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	while (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
		if (errno != EINTR)
			return -errno;
	}
	if (!trusted(fd))
		return -EPERM;
	*ret_fd = COOP_TAKE_FD(fd);
	return 0;
}

static bool nobody_there(int status)
{
	return status == -ENOENT || status == -ECONNREFUSED;
}

static int connect_or_start(const char *path, const struct coop_options *options, int *ret_fd,
			    struct coop_error *error)
{
	int r = connect_to(path, ret_fd);

	if (nobody_there(r)) {
		if (options->no_start)
			return coop_client_fail(error, -ECONNREFUSED, "unreachable",
						"no keeper is running at %s", path);
		r = coop_client_start(path, options, error);
		if (r < 0)
			return r;
		r = connect_to(path, ret_fd);
	}
	if (r == -EPERM)
		return coop_client_fail(error, r, "unreachable",
					"the keeper at %s belongs to another user", path);
	if (r < 0)
		return coop_client_fail(error, r, "unreachable",
					"cannot connect to the keeper at %s: %s", path,
					strerror(-r));
	return 0;
}

COOP_PUBLIC int coop_open(const struct coop_options *options, struct coop **ret,
			  struct coop_error *error)
{
	static const struct coop_options defaults;
	char path[sizeof((struct sockaddr_un){0}).sun_path];
	const char *token;
	int r;

	if (!options)
		options = &defaults;
	r = coop_client_token(options, &token, error);
	if (r == 0)
		r = find_socket(options, path, sizeof path, error);
	for (int attempt = 0; r == 0 && attempt < ATTEMPTS; attempt++) {
		int fd = -1;
		r = connect_or_start(path, options, &fd, error);
		if (r < 0)
			return r;
		struct coop *coop = coop_client_new(fd);
		if (!coop) {
			(void)close(fd);
			return coop_client_fail(error, -ENOMEM, "internal", "out of memory");
		}
		r = coop_client_greet(coop, error);
		if (r == 0 && token)
			r = coop_client_login(coop, token, error);
		if (r == 0) {
			*ret = coop;
			return 0;
		}
		coop_close(coop);
		/* Closed before it said anything: it was on its way out. Anything else will not get
		 * better. */
		if (r == -EPIPE)
			r = attempt + 1 < ATTEMPTS ? 0 : r;
	}
	return r;
}

COOP_PUBLIC int coop_open_fd(int fd, struct coop **ret, struct coop_error *error)
{
	struct coop *coop = coop_client_new(fd);

	if (!coop)
		return coop_client_fail(error, -ENOMEM, "internal", "out of memory");
	*ret = coop;
	return 0;
}

COOP_PUBLIC void coop_close(struct coop *coop)
{
	if (!coop)
		return;
	if (coop->child.pid && coop->owner == getpid()) {
		/* A forked copy of this program may hold the socket too; the keeper must see the
		 * end all the same. */
		(void)shutdown(coop->fd, SHUT_RDWR);
		(void)close(coop->fd);
		coop_child_end(&coop->child, COOP_CLIENT_PATIENCE_MS);
	} else {
		(void)close(coop->fd);
		if (coop->child.pidfd >= 0)
			(void)close(coop->child.pidfd);
	}
	coop_buf_clear(&coop->in);
	coop_buf_clear(&coop->out);
	json_decref(coop->inherit);
	free(coop->slots);
	free(coop);
}

COOP_PUBLIC int coop_keeper_pid(const struct coop *coop)
{
	return coop->keeper_pid;
}

COOP_PUBLIC const char *coop_keeper_version(const struct coop *coop)
{
	return coop->keeper_version;
}
