#include "doors/http/net/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <uv.h>

#include "base/io/log.h"
#include "base/mem.h"
#include "doors/http/net/conn.h"
#include "doors/http/net/conns.h"
#include "doors/http/net/net.h"
#include "doors/http/net/place.h"

/* Connections of one turn: a flood of new ones must leave the old ones theirs. */
#define ACCEPTS_MAX 64
#define STARVED_MS 100

struct coop_http_listener {
	struct coop_http_net *net;
	int fd;
	bool tls, tcp;
	unsigned handles;
	uv_poll_t poll;
	uv_timer_t again; /* runs while there is no descriptor left */
};

static void on_poll(uv_poll_t *poll, int status, int events);

void coop_http_listener_start(struct coop_http_listener *listener)
{
	(void)uv_poll_start(&listener->poll, UV_READABLE, on_poll);
}

static void on_again(uv_timer_t *timer)
{
	coop_http_listener_start(timer->data);
}

/* The peer's address; false: it has none. */
static bool address_of(const struct sockaddr_storage *from, struct coop_address *ret)
{
	const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};

	if (from->ss_family == AF_INET6) {
		memcpy(ret->bytes, &((const struct sockaddr_in6 *)from)->sin6_addr, 16);
		return true;
	}
	memcpy(ret->bytes, v4, sizeof v4);
	if (from->ss_family == AF_INET)
		memcpy(ret->bytes + 12, &((const struct sockaddr_in *)from)->sin_addr, 4);
	return from->ss_family == AF_INET;
}

/* Without room the client is told so, if it listens at all. */
static void turn_away(int fd, bool tls)
{
	static const char text[] =
		"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
		"Content-Length: 72\r\nConnection: close\r\n\r\n"
		"{\"error\":\"sandbox_overloaded\",\"message\":\"too many connections are open\"}";

	if (!tls)
		(void)send(fd, text, sizeof text - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	(void)close(fd);
}

/* False: no more now. */
static bool accept_one(struct coop_http_listener *listener)
{
	struct coop_http_net *net = listener->net;
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof address;
	int fd = accept4(listener->fd, (struct sockaddr *)&address, &size,
			 SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd < 0 && (errno == ECONNABORTED || errno == EINTR))
		return true;
	if (fd < 0 && errno != EAGAIN) {
		/* What nobody takes keeps the socket ready: look away, or the loop would not
		 * rest. */
		coop_log(COOP_LOG_WARN, "connections have to wait: %s", strerror(errno));
		(void)uv_poll_stop(&listener->poll);
		(void)uv_timer_start(&listener->again, on_again, STARVED_MS, 0);
	}
	if (fd < 0)
		return false;
	if (net->counts.connections >= net->max_connections && !coop_http_conns_crowd_out(net)) {
		turn_away(fd, listener->tls);
		return true;
	}
	struct coop_address peer;
	bool has_peer = listener->tcp && address_of(&address, &peer);
	coop_http_conn_open(net, fd, listener->tls, has_peer ? &peer : NULL);
	return true;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct coop_http_listener *listener = poll->data;

	for (int i = 0; i < ACCEPTS_MAX && accept_one(listener); i++)
		;
}

static void note_port(struct coop_http_place *place, const struct sockaddr_storage *address)
{
	int port = 0;

	if (address->ss_family == AF_INET)
		port = ntohs(((const struct sockaddr_in *)address)->sin_port);
	else if (address->ss_family == AF_INET6)
		port = ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
	if (port && place->port_count < COOP_PLACE_PORTS_MAX)
		place->ports[place->port_count++] = port;
}

struct coop_http_listener *coop_http_listener_new(struct coop_http_net *net, int fd, bool tls)
{
	struct sockaddr_storage address = {0};
	socklen_t size = sizeof address;
	int one = 1;
	struct coop_http_listener *listener = coop_mem_zalloc(sizeof *listener);

	if (!listener || getsockname(fd, (struct sockaddr *)&address, &size) < 0 ||
	    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0 ||
	    uv_poll_init(net->loop, &listener->poll, fd) < 0) {
		free(listener);
		return NULL;
	}
	(void)uv_timer_init(net->loop, &listener->again);
	listener->poll.data = listener->again.data = listener;
	listener->handles = 2;
	listener->net = net;
	listener->fd = fd;
	listener->tls = tls;
	listener->tcp = address.ss_family != AF_UNIX;
	/* What is accepted has it from here. */
	if (listener->tcp)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	note_port(net->place, &address);
	return listener;
}

static void on_closed(uv_handle_t *handle)
{
	struct coop_http_listener *listener = handle->data;

	if (--listener->handles == 0)
		free(listener);
}

void coop_http_listener_close(struct coop_http_listener *listener)
{
	uv_close((uv_handle_t *)&listener->poll, on_closed);
	uv_close((uv_handle_t *)&listener->again, on_closed);
	(void)close(listener->fd);
}
