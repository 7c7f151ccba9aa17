#include "keeper/main/locks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>
#include <uv.h>

#include "base/cleanup.h"
#include "base/io/claim.h"
#include "base/io/paths.h"
#include "base/io/procfs.h"
#include "keeper/confine/freeze.h"
#include "keeper/core/keeper.h"
#include "keeper/link/listener.h"

#define SOCKET_MAX (sizeof((struct sockaddr_un *)NULL)->sun_path - sizeof ".gate")
#define STATE_ROOM 64 /* for the names of files in it */
#define OTHER_TEXT 40
#define LOCK_TRIES 15 /* of a second each: the longest orderly stop is well inside */

/* Whether /proc shows that a process was sent SIGKILL, which it may still have to die of. */
static bool kill_is_pending(pid_t pid)
{
	static const char *const sets[] = {"\nSigPnd:", "\nShdPnd:"};
	char text[4096];

	if (coop_proc_read_file(pid, "status", text, sizeof text) < 0)
		return false;
	for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
		const char *at = strstr(text, sets[i]);
		if (at && strtoull(at + strlen(sets[i]), NULL, 16) & 1u << (SIGKILL - 1))
			return true;
	}
	return false;
}

/* Whether a process is gone, or was killed and is on its way: that may take as long as its memory
 * is large or its disk stands still, and until then it has its sockets and locks. Its first thread
 * shows up as dead while another one waits for a disk, so that the signal is asked for, too. */
static bool doomed(pid_t pid)
{
	struct coop_proc proc;

	if (kill(pid, 0) < 0 && errno == ESRCH)
		return true;
	return (coop_proc_read(pid, &proc) == 0 && (proc.dead || proc.exiting)) ||
	       kill_is_pending(pid);
}

/* Whether the process that listens will serve. Of one that was killed a child that has not executed
 * yet keeps the socket open for a moment. One whose number is not known here counts as alive. */
static bool listener_lives(int fd)
{
	struct ucred peer = {0};
	socklen_t size = sizeof peer;

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 || peer.pid <= 0 ||
	       !doomed(peer.pid);
}

static bool answers(const char *path)
{
	struct sockaddr_un address = coop_listener_address(path);
	COOP_AUTO_FD int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 &&
	       listener_lives(fd);
}

/* Whether the keeper that holds the lock is one that serves, and not one that is about to leave:
 * the file says where. */
static bool holder_serves(int fd)
{
	char path[sizeof((struct sockaddr_un *)NULL)->sun_path + 1];
	ssize_t n = pread(fd, path, sizeof path - 1, 0);

	if (n <= 0)
		return false;
	path[n] = 0;
	return answers(path);
}

/* The guard of a dead keeper keeps the locks until all that it looks after is dead, which frozen
 * ones cannot be. */
static void help_guard(const char *state_dir)
{
	char path[4200];

	(void)snprintf(path, sizeof path, "%s/lock", state_dir);
	COOP_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && !holder_serves(fd))
		coop_freeze_let_go(state_dir);
}

static void on_second(int number)
{
	(void)number; /* it has interrupted flock(), which is all that it is for */
}

/* Has a signal come each second, or no more. The mask may be somebody's who blocked it. */
static void tick(bool on)
{
	const struct itimerval each = {.it_interval.tv_sec = on, .it_value.tv_sec = on};
	struct sigaction action = {.sa_handler = on ? on_second : SIG_DFL};
	sigset_t alarm;

	(void)sigemptyset(&alarm);
	(void)sigaddset(&alarm, SIGALRM);
	if (on) {
		(void)sigaction(SIGALRM, &action, NULL);
		(void)sigprocmask(SIG_UNBLOCK, &alarm, NULL);
	}
	(void)setitimer(ITIMER_REAL, &each, NULL);
	if (!on)
		(void)sigaction(SIGALRM, &action, NULL);
}

/* Waits for a holder that is on its way out, or for the guard of a dead one; this runs before there
 * is a loop. The claim is ours, so nobody who is to stay comes to hold the lock meanwhile. Only a
 * keeper of a version that makes no claims may, and is asked whether it answers. */
static int wait_for_lock(int fd, const char *state_dir)
{
	int r = -EWOULDBLOCK;

	tick(true);
	for (int tries = 0; r == -EWOULDBLOCK && tries < LOCK_TRIES; tries++) {
		if (holder_serves(fd))
			break;
		help_guard(state_dir);
		r = flock(fd, LOCK_EX) == 0 ? 0 : errno == EINTR ? -EWOULDBLOCK : -errno;
	}
	tick(false);
	return r;
}

static int lock_file(const char *path, const char *state_dir, int *ret_fd)
{
	COOP_AUTO_FD int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int r = fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;

	if (r == -EWOULDBLOCK)
		r = wait_for_lock(fd, state_dir);
	if (r == 0)
		*ret_fd = COOP_TAKE_FD(fd);
	return r;
}

/* Whether a claim is free, or held by what is left of a keeper that was killed: itself, or a child
 * of it that is about to execute. */
static bool claim_falls(const char *path, pid_t *ret_other)
{
	return !coop_claim_held(path, ret_other) || (*ret_other > 0 && doomed(*ret_other));
}

/* Whether this is the one keeper that may be there: another one that starts or serves holds the
 * claim, one that leaves, and the guard of a dead one, do not. Where the file system has no such
 * locks it is found out by waiting. */
static bool claim(const char *path, int *ret_fd, pid_t *ret_other)
{
	int r = coop_claim_take(path, ret_fd);

	*ret_other = 0;
	if (r != -EWOULDBLOCK)
		return true;
	tick(true);
	for (int tries = 0; r == -EWOULDBLOCK && tries < LOCK_TRIES; tries++) {
		if (!claim_falls(path, ret_other))
			break;
		r = coop_claim_wait(path, ret_fd);
	}
	tick(false);
	return r != -EWOULDBLOCK;
}

/* "another keeper (pid 17)"; one that has not written its number yet, or is gone by now, has
 * none. */
static const char *other_keeper(pid_t pid, char ret_text[OTHER_TEXT])
{
	if (pid > 0)
		(void)snprintf(ret_text, OTHER_TEXT, "another keeper (pid %d)", pid);
	else
		(void)snprintf(ret_text, OTHER_TEXT, "another keeper");
	return ret_text;
}

static void do_nothing(void *unused)
{
	(void)unused;
}

/* The loop's helper thread is made when it is first needed, and the loop aborts if it cannot be.
 * Old filters of containers refuse clone3 with an error that the C library takes at its word; the
 * kernel itself has another one for a call without arguments. */
static int check_threads(struct coop_err *err)
{
	uv_thread_t thread;

	if (syscall(SYS_clone3, NULL, 0) == 0 || errno != EPERM)
		return 0;
	int r = uv_thread_create(&thread, do_nothing, NULL);
	if (r < 0)
		return coop_err_set(err, COOP_UNAVAILABLE,
				    "no threads can be made here: clone3 is refused (EPERM) by an "
				    "old container's filter (Docker 20.10.10 or newer does not)");
	return uv_thread_join(&thread);
}

/* A folder as it resolves: what is hidden from commands is known by what a path leads to. One that
 * would not fit stays as it is. */
static void settle(char *path, size_t size)
{
	COOP_AUTO_FREE char *real = realpath(path, NULL);

	if (real && strlen(real) < size)
		memcpy(path, real, strlen(real) + 1);
}

/* The same for the folder that the socket lies in. The gate beside it must fit an address, too. */
static void settle_socket(char *path)
{
	char name[SOCKET_MAX], *slash = strrchr(path, '/');

	if (!slash || strlen(path) >= sizeof name)
		return;
	(void)snprintf(name, sizeof name, "%s", slash + 1);
	*slash = 0;
	COOP_AUTO_FREE char *real = realpath(*path ? path : "/", NULL);
	*slash = '/';
	if (real && strlen(real) + strlen(name) + 1 < SOCKET_MAX)
		(void)stpcpy(stpcpy(stpcpy(path, real[1] ? real : ""), "/"), name);
}

int coop_locks_take(struct coop_locks *locks, struct coop_place *place, struct coop_err *err)
{
	char path[4200], why[512], other[OTHER_TEXT];
	struct stat present;
	pid_t pid;
	int state_lock, r = check_threads(err);

	if (r < 0)
		return r;
	r = coop_paths_make_parent(place->socket);
	if (r < 0) {
		coop_paths_explain_parent(place->socket, r, why, sizeof why);
		return coop_err_set(err, COOP_UNAVAILABLE, "the socket %s cannot be there: %s",
				    place->socket, why);
	}
	settle_socket(place->socket);
	/* Only a socket that a keeper left behind may be replaced. */
	if (lstat(place->socket, &present) == 0 && !S_ISSOCK(present.st_mode))
		return coop_err_set(err, COOP_UNAVAILABLE,
				    "%s is there and is no socket: set COOP_SOCKET", place->socket);
	/* A living keeper holds its lock for ever; asking it is quicker than waiting for that. */
	if (answers(place->socket))
		return coop_err_set(err, COOP_EXISTS, "a keeper is running already on %s",
				    place->socket);
	(void)snprintf(path, sizeof path, "%s.pid", place->socket);
	if (!claim(path, &locks->claims[0], &pid))
		return coop_err_set(err, COOP_EXISTS, "%s is starting or serving on %s",
				    other_keeper(pid, other), place->socket);
	(void)snprintf(path, sizeof path, "%s.lock", place->socket);
	r = lock_file(path, place->state_dir, &locks->socket);
	if (r < 0)
		return coop_err_set(err, COOP_EXISTS, "%s is held by another keeper", path);
	r = coop_paths_make_dir(place->state_dir);
	if (r < 0) {
		coop_paths_explain_dir(place->state_dir, r, why, sizeof why);
		return coop_err_set(err, COOP_UNAVAILABLE,
				    "the state folder %.300s cannot be used: %s", place->state_dir,
				    why);
	}
	settle(place->state_dir, sizeof place->state_dir - STATE_ROOM);
	(void)snprintf(path, sizeof path, "%s/pid", place->state_dir);
	bool ours = claim(path, &locks->claims[1], &pid);
	(void)snprintf(path, sizeof path, "%s/lock", place->state_dir);
	r = ours ? lock_file(path, place->state_dir, &state_lock) : -EWOULDBLOCK;
	if (r < 0 && r != -EWOULDBLOCK)
		return coop_err_set(err, COOP_UNAVAILABLE,
				    "the state folder %.300s cannot be used: %s", place->state_dir,
				    strerror(-r));
	if (r < 0)
		return coop_err_set(err, COOP_UNAVAILABLE,
				    "the state folder %.300s is used by %s: set COOP_STATE",
				    place->state_dir, other_keeper(pid, other));
	coop_freeze_let_go(place->state_dir);
	/* For the next who wants it. Without room on the disk it waits instead of asking. The
	 * descriptor is held until the process ends. */
	if (ftruncate(state_lock, 0) == 0)
		(void)!pwrite(state_lock, place->socket, strlen(place->socket), 0);
	return 0;
}

void coop_locks_let_go(struct coop_locks *locks)
{
	for (int i = 0; i < 2; i++) {
		if (locks->claims[i] >= 0)
			(void)close(COOP_TAKE_FD(locks->claims[i]));
	}
}

void coop_locks_take_over(struct coop_locks *locks)
{
	for (int i = 0; i < 2; i++) {
		if (locks->claims[i] >= 0)
			coop_claim_name(locks->claims[i]);
	}
}
