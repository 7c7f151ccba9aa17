#include "keeper/link/listener.h"

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

#include "base/cleanup.h"
#include "base/io/claim.h"
#include "base/io/log.h"
#include "base/io/paths.h"
#include "base/io/procfs.h"
#include "base/mem.h"
#include "keeper/confine/views.h"
#include "keeper/core/keeper.h"
#include "keeper/link/admission.h"
#include "keeper/link/connection.h"
#include "keeper/link/peer.h"
#include "keeper/tree/freeze.h"

#define BACKLOG 1024
#define STARVED_MS 100
#define SOCKET_MAX (sizeof((struct sockaddr_un *)NULL)->sun_path - sizeof ".gate")
#define STATE_ROOM 64   /* for the names of files in it */
#define ACCEPTS_MAX 256 /* a turn: who only connects must not keep the loop from all else */
#define OTHER_TEXT 40
#define LOCK_TRIES 15 /* of a second each: the longest orderly stop is well inside */

/* The path has been checked to fit (coop_paths_socket). */
struct coop_listener {
	struct coop_keeper *keeper;
	uv_poll_t poll;
	uv_timer_t again; /* runs while not even the spare descriptor is there */
	int fd;
	enum coop_conn_as as; /* what its connections begin as */
	bool open, starved;
};

#define LOCKS 3

struct coop_listeners {
	int locks[LOCKS]; /* the socket's; claims of it and of the state folder; -1: none */
	int spare_fd;
	struct coop_listener door, gate;
	char gate_path[108]; /* "": there is none; no longer than sun_path */
};

struct coop_listeners *coop_listeners_new(struct coop_keeper *keeper)
{
	struct coop_listeners *listeners = coop_mem_zalloc(sizeof *listeners);

	if (!listeners)
		return NULL;
	*listeners = (struct coop_listeners){
		.locks = {-1, -1, -1},
		.spare_fd = -1,
		.door = {.keeper = keeper, .fd = -1, .as = COOP_CONN_OPERATOR},
		.gate = {.keeper = keeper, .fd = -1, .as = COOP_CONN_NOBODY},
	};
	return listeners;
}

static struct sockaddr_un address_of(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memcpy(address.sun_path, path, strnlen(path, sizeof address.sun_path - 1));
	return address;
}

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
	struct sockaddr_un address = address_of(path);
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

int coop_listener_lock(struct coop_listeners *listeners, struct coop_place *place,
		       struct coop_err *err)
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
	if (!claim(path, &listeners->locks[1], &pid))
		return coop_err_set(err, COOP_EXISTS, "%s is starting or serving on %s",
				    other_keeper(pid, other), place->socket);
	(void)snprintf(path, sizeof path, "%s.lock", place->socket);
	r = lock_file(path, place->state_dir, &listeners->locks[0]);
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
	bool ours = claim(path, &listeners->locks[2], &pid);
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

static bool welcome(struct coop_keeper *keeper, int fd)
{
	struct ucred peer;
	socklen_t size = sizeof peer;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0 ||
	    (peer.uid != geteuid() && peer.uid != 0))
		return false;
	/* With namespaces nobody inside reaches this socket. Where some were tolerated to be
	 * missing, it is we who say no. */
	return !coop_views_loose(keeper) || !coop_peer_confined(keeper, peer.pid);
}

static void on_connection(uv_poll_t *poll, int status, int events);
static void on_again(uv_timer_t *timer);

static bool has_spare(struct coop_keeper *keeper)
{
	if (coop_listeners_of(keeper)->spare_fd < 0)
		coop_listeners_of(keeper)->spare_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	return coop_listeners_of(keeper)->spare_fd >= 0;
}

/* A connection that nobody takes keeps the socket ready: it is not looked at for a while, or the
 * loop would not come to rest. */
static void pause_accepting(struct coop_listener *listener)
{
	if (!listener->starved)
		coop_log(COOP_LOG_WARN, "no file descriptor left: connections have to wait");
	listener->starved = true;
	(void)uv_poll_stop(&listener->poll);
	(void)uv_timer_start(&listener->again, on_again, STARVED_MS, 0);
}

static void on_again(uv_timer_t *timer)
{
	struct coop_listener *listener = timer->data;

	if (!has_spare(listener->keeper) ||
	    uv_poll_start(&listener->poll, UV_READABLE, on_connection) < 0)
		pause_accepting(listener);
	else
		listener->starved = false;
}

/* No descriptor is left: the spare one lets the client be turned away instead of hanging in the
 * queue. */
static void turn_away(struct coop_listener *listener)
{
	struct coop_keeper *keeper = listener->keeper;
	int fd = -1;

	if (coop_listeners_of(keeper)->spare_fd >= 0) {
		(void)close(coop_listeners_of(keeper)->spare_fd);
		coop_listeners_of(keeper)->spare_fd = -1;
		fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);
	}
	if (fd >= 0) {
		(void)close(fd);
		coop_log(COOP_LOG_WARN, "no file descriptor left: a connection was turned away");
	}
	if (!has_spare(keeper) || fd < 0)
		pause_accepting(listener);
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
	struct coop_listener *listener = poll->data;
	struct coop_keeper *keeper = listener->keeper;

	(void)status;
	(void)events;
	for (int i = 0; i < ACCEPTS_MAX; i++) {
		int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
			turn_away(listener);
			return;
		}
		if (fd < 0)
			return;
		if (!welcome(keeper, fd) ||
		    !coop_admission_allows(keeper, fd, listener->as == COOP_CONN_OPERATOR))
			(void)close(fd);
		else /* without memory it is closed: the client tries again */
			(void)coop_conn_open(keeper, fd, listener->as);
	}
}

static int watch(struct coop_listener *listener)
{
	struct coop_keeper *keeper = listener->keeper;
	int r = uv_poll_init(coop_loop_of(keeper), &listener->poll, listener->fd);

	if (r < 0)
		return r;
	(void)uv_timer_init(coop_loop_of(keeper), &listener->again);
	listener->poll.data = listener->again.data = listener;
	listener->open = true;
	return uv_poll_start(&listener->poll, UV_READABLE, on_connection);
}

/* 0 or -errno. */
static int open_at(struct coop_listener *listener, const char *path)
{
	struct sockaddr_un address = address_of(path);
	int r = 0;

	(void)unlink(path); /* we hold the lock: whatever is there is left over */
	listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask = umask(0077);
	if (listener->fd < 0 ||
	    bind(listener->fd, (const struct sockaddr *)&address, sizeof address) < 0 ||
	    listen(listener->fd, BACKLOG) < 0)
		r = -errno;
	(void)umask(mask);
	if (r == 0)
		r = watch(listener);
	if (r < 0 && listener->fd >= 0 && !listener->open)
		(void)close(listener->fd);
	return r;
}

static void close_one(struct coop_listener *listener, const char *path)
{
	if (!listener->open)
		return;
	listener->open = false;
	uv_close((uv_handle_t *)&listener->poll, NULL);
	uv_close((uv_handle_t *)&listener->again, NULL);
	(void)close(listener->fd);
	listener->fd = -1;
	(void)unlink(path);
}

/* The keeper serves without a gate, too: only a gateway misses it. */
static void open_gate(struct coop_keeper *keeper)
{
	struct coop_listeners *listeners = coop_listeners_of(keeper);
	const char *socket = coop_place_of(keeper)->socket;
	char *path = listeners->gate_path;
	struct stat present;
	int n = snprintf(path, sizeof listeners->gate_path, "%s.gate", socket);
	int r = n < 0 || (size_t)n >= sizeof listeners->gate_path ? -ENAMETOOLONG : 0;

	if (r == 0 && lstat(path, &present) == 0 && !S_ISSOCK(present.st_mode))
		r = -EEXIST;
	if (r == 0)
		r = open_at(&listeners->gate, path);
	if (r == 0)
		return;
	coop_log(COOP_LOG_WARN, "there is no gate at %s.gate error=\"%s\"", socket, strerror(-r));
	close_one(&listeners->gate, path);
	*path = 0;
}

const char *coop_listener_gate(const struct coop_keeper *keeper)
{
	return coop_listeners_of(keeper)->gate_path;
}

int coop_listener_open(struct coop_keeper *keeper, struct coop_err *err)
{
	/* The gate first: who finds the socket finds the gate. */
	open_gate(keeper);
	int r = open_at(&coop_listeners_of(keeper)->door, coop_place_of(keeper)->socket);
	if (r < 0)
		return coop_err_set(err, COOP_UNAVAILABLE, "the socket %s cannot be opened: %s",
				    coop_place_of(keeper)->socket, strerror(-r));
	return 0;
}

void coop_listener_let_go(struct coop_keeper *keeper)
{
	for (size_t i = 1; i < LOCKS; i++) {
		if (coop_listeners_of(keeper)->locks[i] >= 0)
			(void)close(COOP_TAKE_FD(coop_listeners_of(keeper)->locks[i]));
	}
}

void coop_listener_take_over(struct coop_keeper *keeper)
{
	for (size_t i = 1; i < LOCKS; i++) {
		if (coop_listeners_of(keeper)->locks[i] >= 0)
			coop_claim_name(coop_listeners_of(keeper)->locks[i]);
	}
}

void coop_listener_close(struct coop_keeper *keeper)
{
	/* From here on the next keeper waits for the end of this one. */
	coop_listener_let_go(keeper);
	close_one(&coop_listeners_of(keeper)->door, coop_place_of(keeper)->socket);
	close_one(&coop_listeners_of(keeper)->gate, coop_listeners_of(keeper)->gate_path);
}
