#include "keeper/link/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io/log.h"
#include "base/mem.h"
#include "keeper/core/keeper.h"
#include "keeper/link/admission.h"
#include "keeper/link/connection.h"

#define BACKLOG 1024
#define STARVED_MS 100
#define ACCEPTS_MAX 256 /* a turn: who only connects must not keep the loop from all else */

/* The path has been checked to fit (coop_paths_socket). */
struct coop_listener {
	struct coop_keeper *keeper;
	uv_poll_t poll;
	uv_timer_t again; /* runs while not even the spare descriptor is there */
	int fd;
	enum coop_conn_as as; /* what its connections begin as */
	bool open, starved;
};

struct coop_listeners {
	bool (*may_connect)(struct coop_keeper *keeper, pid_t pid);
	int spare_fd;
	struct coop_listener door, gate;
	char gate_path[108]; /* "": there is none; no longer than sun_path */
};

struct coop_listeners *coop_listeners_new(struct coop_keeper *keeper,
					  bool (*may_connect)(struct coop_keeper *keeper,
							      pid_t pid))
{
	struct coop_listeners *listeners = coop_mem_zalloc(sizeof *listeners);

	if (!listeners)
		return NULL;
	*listeners = (struct coop_listeners){
		.may_connect = may_connect,
		.spare_fd = -1,
		.door = {.keeper = keeper, .fd = -1, .as = COOP_CONN_OPERATOR},
		.gate = {.keeper = keeper, .fd = -1, .as = COOP_CONN_NOBODY},
	};
	return listeners;
}

struct sockaddr_un coop_listener_address(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	memcpy(address.sun_path, path, strnlen(path, sizeof address.sun_path - 1));
	return address;
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
	return coop_listeners_of(keeper)->may_connect(keeper, peer.pid);
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
	struct sockaddr_un address = coop_listener_address(path);
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

void coop_listener_close(struct coop_keeper *keeper)
{
	close_one(&coop_listeners_of(keeper)->door, coop_place_of(keeper)->socket);
	close_one(&coop_listeners_of(keeper)->gate, coop_listeners_of(keeper)->gate_path);
}
