/* How a launcher's program is started, from the copy inside this one. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io/memfd.h"
#include "base/list.h"
#include "base/mem.h"
#include "keeper/core/keeper.h"
#include "keeper/launch/launcher_start.h"
#include "sandbox/filter/filter.h"

#define PROBE_MS 10000
/* Above all numbers that a launcher finds its own at. */
#define FD_ABOVE 16

extern const uint8_t coop_launcher_image[], coop_launcher_image_end[];

static int execute(const struct coop_keeper *keeper, const struct coop_launcher_start *how,
		   pid_t *ret_pid)
{
	const struct coop_launcher_class *class = how->class;
	int socket = how->socket, userns = how->userns;
	char path[32], name[] = "coop-launcher", kind[16], uid[16] = "-", gid[16] = "-";
	char doors[16], join[8];
	char *argv[] = {name, kind, uid, gid, doors, join, NULL}, *envp[] = {NULL};
	const int given[][2] = {{socket, COOP_LAUNCHER_FD_SOCKET},
				{coop_launchers_of(keeper)->filters_fd, COOP_LAUNCHER_FD_FILTERS},
				{coop_launchers_of(keeper)->image_fd, COOP_LAUNCHER_FD_IMAGE},
				{userns, COOP_LAUNCHER_FD_USERNS}};
	posix_spawn_file_actions_t actions;

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", coop_launchers_of(keeper)->image_fd);
	(void)snprintf(kind, sizeof kind, "%d", (int)class->kind);
	(void)snprintf(doors, sizeof doors, "%d", how->door_count);
	(void)snprintf(join, sizeof join, "%s", userns >= 0 ? "join" : "-");
	if (class->other_ids) {
		(void)snprintf(uid, sizeof uid, "%u", class->uid);
		(void)snprintf(gid, sizeof gid, "%u", class->gid);
	}
	int r = posix_spawn_file_actions_init(&actions);
	for (int fd = 0; r == 0 && fd < 3; fd++)
		r = posix_spawn_file_actions_adddup2(&actions, coop_place_of(keeper)->null_fd, fd);
	for (size_t i = 0; r == 0 && i < sizeof given / sizeof given[0]; i++) {
		if (given[i][0] >= 0)
			r = posix_spawn_file_actions_adddup2(&actions, given[i][0], given[i][1]);
	}
	for (int i = 0; r == 0 && i < how->door_count; i++)
		r = posix_spawn_file_actions_adddup2(&actions, how->doors[i],
						     COOP_LAUNCHER_FD_DOORS + i);
	/* Shares the keeper's memory until it executes: costs the same however large the keeper
	 * is. */
	if (r == 0)
		r = posix_spawn(ret_pid, path, &actions, NULL, argv, envp);
	(void)posix_spawn_file_actions_destroy(&actions);
	return -r;
}

/* Its number is high enough not to be overwritten on the way into a launcher. */
int coop_launcher_raise_fd(int fd)
{
	int raised = fd < 0 ? fd : fcntl(fd, F_DUPFD_CLOEXEC, FD_ABOVE);

	if (fd >= 0)
		(void)close(fd);
	/* The kernel says EINVAL where no number as high may be used at all. */
	return raised < 0 && fd >= 0 ? -EMFILE : raised;
}

int coop_launcher_raise_fds(int *fds, int count)
{
	int r = 0;

	for (int i = 0; i < count; i++) {
		fds[i] = coop_launcher_raise_fd(fds[i]);
		r = fds[i] < 0 && r == 0 ? fds[i] : r;
	}
	for (int i = 0; r < 0 && i < count; i++) {
		if (fds[i] >= 0)
			(void)close(fds[i]);
	}
	return r;
}

int coop_launcher_start(struct coop_keeper *keeper, struct coop_launcher_start *how, int *ret_fd,
			pid_t *ret_pid)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	COOP_AUTO_FD int ours = pair[0];
	int theirs = coop_launcher_raise_fd(pair[1]);
	how->socket = theirs;
	int r = theirs < 0 ? theirs : execute(keeper, how, ret_pid);
	if (theirs >= 0)
		(void)close(theirs);
	if (r == 0)
		*ret_fd = COOP_TAKE_FD(ours);
	return r;
}

int coop_launchers_probe(struct coop_keeper *keeper, const struct coop_launcher_class *class,
			 struct coop_host *ret)
{
	struct coop_launcher_class probe = *class;
	struct pollfd answer = {.events = POLLIN};
	pid_t pid = 0;
	int fd = -1;

	probe.kind = COOP_LAUNCHER_PROBE;
	struct coop_launcher_start how = {.class = &probe, .userns = -1};
	int r = coop_launcher_start(keeper, &how, &fd, &pid);
	if (r < 0)
		return r;
	answer.fd = fd;
	if (poll(&answer, 1, PROBE_MS) <= 0 ||
	    recv(fd, ret, sizeof *ret, MSG_DONTWAIT) != (ssize_t)sizeof *ret)
		r = -EIO;
	(void)close(fd);
	(void)kill(pid, SIGKILL); /* our unreaped child */
	(void)waitpid(pid, NULL, 0);
	return r;
}

static int fill(struct coop_launchers *launchers)
{
	struct coop_buf filters = {0};
	int r = coop_filter_build(&filters);

	if (r == 0)
		r = launchers->filters_fd = coop_launcher_raise_fd(coop_memfd_sealed(
			"coop-filters", coop_buf_front(&filters), coop_buf_size(&filters)));
	coop_buf_clear(&filters);
	if (r >= 0)
		r = launchers->image_fd = coop_launcher_raise_fd(
			coop_memfd_sealed("coop-launcher", coop_launcher_image,
					  (size_t)(coop_launcher_image_end - coop_launcher_image)));
	return r < 0 ? r : 0;
}

int coop_launchers_new(struct coop_launchers **ret)
{
	struct coop_launchers *launchers = coop_mem_zalloc(sizeof *launchers);

	if (!launchers)
		return -ENOMEM;
	launchers->image_fd = launchers->filters_fd = -1;
	coop_list_init(&launchers->all);
	*ret = launchers;
	return fill(launchers);
}

struct coop_link *coop_launchers_all(const struct coop_keeper *keeper)
{
	return &coop_launchers_of(keeper)->all;
}

unsigned coop_launchers_restarts(const struct coop_keeper *keeper)
{
	return coop_launchers_of(keeper)->restarts;
}

uint64_t coop_launchers_sequence(const struct coop_keeper *keeper)
{
	return coop_launchers_of(keeper)->sequence;
}

struct coop_helpers *coop_launchers_helpers(const struct coop_keeper *keeper)
{
	return &coop_launchers_of(keeper)->helpers;
}
