/* The floor of the fan-out: a server with nothing around it. Starts PROGRAM, waits for SUBSCRIBERS
 * WebSockets, and sends to all of them what comes out of its pipe: each read is encoded once, as a
 * frame that looks as coop's do, and goes out with writev(), up to 16 frames a call.
 *
 *     fanout_floor SUBSCRIBERS PROGRAM [ARGUMENT...]
 *
 * Prints its port. Ends when the program has and all have been told. While much waits to be sent it
 * does not read. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text/base64.h"
#include "bench.h"
#include "ws_link.h"

enum { BATCH = 16, CHUNK = 32768, PIPE_SIZE = 1 << 20, WAITING_MAX = 8 << 20, EVENTS = 256 };

struct frame {
	struct frame *next;
	size_t left; /* subscribers that do not have it all */
	size_t size;
	uint8_t bytes[];
};

struct subscriber {
	int fd;
	bool full;        /* the socket takes no more for now */
	struct frame *at; /* NULL: has everything */
	size_t offset;
};

struct server {
	struct subscriber *subscribers;
	size_t count;
	struct frame *newest;
	size_t waiting; /* bytes of all frames that somebody does not have */
	uint64_t cursor;
	int epoll, pipe;
	pid_t child;
};

/* Behind all others. */
static void add_frame(struct server *server, const char *text, size_t text_size, const void *data,
		      size_t size)
{
	size_t length = data ? coop_base64_length(size) : 0;
	size_t payload = text_size + length + (data ? 2 : 0);
	struct frame *frame = malloc(sizeof *frame + WS_HEADER_MAX + payload);

	if (!frame)
		bench_fail_errno("malloc");
	uint8_t *at = frame->bytes + ws_put_header(frame->bytes, payload);
	at = mempcpy(at, text, text_size);
	if (data) {
		coop_base64_encode(data, size, (char *)at);
		at = mempcpy(at + length, "\"}", 2);
	}
	frame->size = (size_t)(at - frame->bytes);
	frame->left = server->count;
	frame->next = NULL;
	server->waiting += frame->size;
	/* The one before may be gone: it is only looked at if somebody still has it before him. */
	bool linked = false;
	for (size_t i = 0; i < server->count; i++) {
		if (!server->subscribers[i].at) {
			server->subscribers[i].at = frame;
		} else if (!linked) {
			server->newest->next = frame;
			linked = true;
		}
	}
	server->newest = frame;
}

/* So many bytes have gone out. */
static void advance(struct server *server, struct subscriber *subscriber, size_t sent)
{
	while (sent) {
		struct frame *frame = subscriber->at;
		size_t rest = frame->size - subscriber->offset;
		if (sent < rest) {
			subscriber->offset += sent;
			return;
		}
		sent -= rest;
		subscriber->offset = 0;
		subscriber->at = frame->next;
		if (--frame->left == 0) {
			server->waiting -= frame->size;
			free(frame);
		}
	}
}

static void pump(struct server *server, struct subscriber *subscriber)
{
	while (subscriber->at && !subscriber->full) {
		struct iovec views[BATCH];
		size_t total = 0, offset = subscriber->offset;
		int count = 0;
		for (struct frame *f = subscriber->at; f && count < BATCH; f = f->next) {
			views[count].iov_base = f->bytes + offset;
			views[count].iov_len = f->size - offset;
			total += views[count++].iov_len;
			offset = 0;
		}
		ssize_t n = writev(subscriber->fd, views, count);
		if (n < 0 && errno != EAGAIN)
			bench_fail_errno("writev");
		if (n > 0)
			advance(server, subscriber, (size_t)n);
		subscriber->full = n < (ssize_t)total;
	}
}

/* Up to a batch of what the program has written. */
static void read_output(struct server *server)
{
	static uint8_t bytes[CHUNK];
	char text[96];

	for (int i = 0; i < BATCH && server->pipe >= 0 && server->waiting < WAITING_MAX; i++) {
		ssize_t n = read(server->pipe, bytes, sizeof bytes);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			bench_fail_errno("read");
		uint64_t cursor = server->cursor++;
		if (n > 0) {
			int size = snprintf(text, sizeof text,
					    "{\"type\":\"stdout\",\"cursor\":%" PRIu64
					    ",\"pid\":\"psh-01234567-1\",\"data\":\"",
					    cursor);
			add_frame(server, text, (size_t)size, bytes, (size_t)n);
			continue;
		}
		int size = snprintf(text, sizeof text,
				    "{\"type\":\"exit\",\"cursor\":%" PRIu64 ",\"exit_code\":0}",
				    cursor);
		add_frame(server, text, (size_t)size, NULL, 0);
		(void)close(server->pipe);
		server->pipe = -1;
	}
}

static void watch(struct server *server, int fd, uint32_t events, size_t index)
{
	struct epoll_event event = {.events = events, .data.u64 = index};

	if (fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ||
	    epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) < 0)
		bench_fail_errno("epoll_ctl");
}

static void serve(struct server *server)
{
	struct epoll_event events[EVENTS];

	watch(server, server->pipe, EPOLLIN, server->count);
	for (size_t i = 0; i < server->count; i++)
		watch(server, server->subscribers[i].fd, EPOLLOUT | EPOLLET, i);
	while (server->pipe >= 0 || server->waiting) {
		int n = epoll_wait(server->epoll, events, EVENTS, -1);
		if (n < 0 && errno != EINTR)
			bench_fail_errno("epoll_wait");
		for (int i = 0; i < n; i++) {
			if (events[i].data.u64 < server->count)
				server->subscribers[events[i].data.u64].full = false;
		}
		if (server->pipe >= 0)
			read_output(server);
		for (size_t i = 0; i < server->count; i++)
			pump(server, &server->subscribers[i]);
	}
}

static void accept_all(struct server *server, int listener)
{
	static const char answer[] =
		"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
		"Connection: Upgrade\r\nSec-WebSocket-Accept: " WS_ACCEPT "\r\n\r\n";
	static const char started[] = "{\"type\":\"started\"}";
	uint8_t text[sizeof answer + WS_HEADER_MAX + sizeof started], *at;
	char head[4096];
	int on = 1;

	at = mempcpy(text, answer, sizeof answer - 1);
	at += ws_put_header(at, sizeof started - 1);
	at = mempcpy(at, started, sizeof started - 1);
	for (size_t i = 0; i < server->count; i++) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0)
			bench_fail_errno("accept");
		/* The reader sends its head in one piece. */
		ssize_t n = recv(fd, head, sizeof head, 0);
		if (n < 4 || memcmp(head + n - 4, "\r\n\r\n", 4) != 0)
			bench_fail("that is no head", NULL);
		link_send(fd, text, (size_t)(at - text));
		server->subscribers[i].fd = fd;
	}
}

static void start_program(struct server *server, char **argv)
{
	posix_spawn_file_actions_t actions;
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC) < 0 || fcntl(pipes[0], F_SETPIPE_SZ, PIPE_SIZE) < 0)
		bench_fail_errno("pipe2");
	if (posix_spawn_file_actions_init(&actions) ||
	    posix_spawn_file_actions_adddup2(&actions, pipes[1], STDOUT_FILENO) ||
	    posix_spawn(&server->child, argv[0], &actions, NULL, argv, environ))
		bench_fail("posix_spawn", argv[0]);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(pipes[1]);
	server->pipe = pipes[0];
}

static int listen_anywhere(void)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t size = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, 512) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &size) < 0)
		bench_fail_errno("listen");
	printf("%u\n", (unsigned)ntohs(address.sin_port));
	(void)fflush(stdout);
	return fd;
}

int main(int argc, char **argv)
{
	struct server server = {.epoll = epoll_create1(EPOLL_CLOEXEC)};
	char ignored[4096];
	int status;

	if (argc < 3)
		bench_fail("usage: fanout_floor SUBSCRIBERS PROGRAM [ARGUMENT...]", NULL);
	server.count = bench_number(argv[1]);
	server.subscribers = calloc(server.count, sizeof *server.subscribers);
	if (!server.subscribers || server.epoll < 0)
		bench_fail_errno("setup");
	int listener = listen_anywhere();
	start_program(&server, argv + 2);
	accept_all(&server, listener);
	serve(&server);
	if (waitpid(server.child, &status, 0) != server.child || status)
		bench_fail("did not exit with 0", argv[2]);
	for (size_t i = 0; i < server.count; i++) {
		(void)fcntl(server.subscribers[i].fd, F_SETFL, 0);
		while (recv(server.subscribers[i].fd, ignored, sizeof ignored, 0) > 0)
			;
		(void)close(server.subscribers[i].fd);
	}
	free(server.subscribers);
	return 0;
}
