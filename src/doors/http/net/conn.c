#include "doors/http/net/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "base/mem.h"
#include "doors/http/net/head.h"
#include "doors/http/net/intake.h"
#include "doors/http/net/net.h"
#include "doors/http/net/share.h"
#include "doors/http/net/tls.h"
#include "doors/http/net/ws_conn.h"

/* Sends of one turn: a fast reader must leave the others theirs. */
#define SENDS_MAX 16
#define TLS_READS_MAX 8

static void on_poll(uv_poll_t *poll, int status, int events);
static void on_readable(struct coop_http_conn *conn);
static void on_deadline(uv_timer_t *timer);

void coop_http_conn_open(struct coop_http_net *net, int fd, bool tls,
			 const struct coop_address *peer)
{
	struct coop_http_conn *conn = coop_mem_zalloc(sizeof *conn);

	if (!conn || uv_poll_init(net->loop, &conn->poll, fd) < 0) {
		(void)close(fd);
		free(conn);
		return;
	}
	(void)uv_timer_init(net->loop, &conn->timer);
	conn->poll.data = conn->timer.data = conn;
	conn->open_handles = 2;
	conn->net = net;
	conn->fd = fd;
	conn->local = !peer;
	conn->has_peer = peer;
	if (peer)
		conn->peer = *peer;
	coop_list_push(&net->conns, &conn->link);
	coop_list_add(&net->strangers, &conn->stranger);
	net->counts.connections++;
	conn->phase = tls ? COOP_CONN_HANDSHAKE : COOP_CONN_HEAD;
	if (tls) {
		conn->tls = coop_tls_accept(net->tls, fd);
		if (!conn->tls) {
			coop_http_conn_drop(conn);
			return;
		}
	}
	coop_http_conn_deadline(conn, tls ? COOP_HEAD_MS : COOP_FIRST_BYTE_MS);
	if (tls)
		coop_http_conn_watch(conn);
	else
		on_readable(conn); /* mostly the request is there already */
}

static void on_handle_closed(uv_handle_t *handle)
{
	struct coop_http_conn *conn = handle->data;

	if (--conn->open_handles)
		return;
	/* Only now: whoever dropped it may have been called from a parser that works on these. */
	coop_tls_free(conn->tls);
	coop_ws_free(conn->ws);
	coop_out_clear(&conn->out);
	coop_buf_clear(&conn->rest);
	coop_buf_clear(&conn->body);
	coop_head_free(conn->head);
	struct coop_http_net *net = conn->net;
	free(conn);
	net->calls->gone(net);
}

static void leave_user(struct coop_http_conn *conn)
{
	coop_share_leave(&conn->part);
	if (conn->user)
		conn->net->calls->left(COOP_TAKE_PTR(conn->user));
}

void coop_http_conn_drop(struct coop_http_conn *conn)
{
	if (conn->phase == COOP_CONN_GONE)
		return;
	conn->phase = COOP_CONN_GONE;
	coop_list_remove(&conn->link);
	coop_list_remove(&conn->stranger);
	conn->net->counts.connections--;
	uv_close((uv_handle_t *)&conn->poll, on_handle_closed);
	uv_close((uv_handle_t *)&conn->timer, on_handle_closed);
	(void)close(conn->fd);
	conn->fd = -1;
	coop_exchange_over(conn);
	coop_ws_over(conn);
	leave_user(conn);
}

int coop_http_conn_enter(struct coop_http_conn *conn, struct coop_user *user,
			 struct coop_agent_share *share)
{
	if (conn->user == user)
		return 0;
	if (!coop_share_enter(&conn->part, share))
		return -EMFILE;
	if (conn->user)
		conn->net->calls->left(conn->user);
	conn->user = user;
	coop_http_conn_count_unread(conn);
	coop_list_remove(&conn->stranger);
	return 0;
}

void coop_http_conn_count_unread(struct coop_http_conn *conn)
{
	/* What WebSockets send is bounded by their windows, and many of them share one copy of
	 * it. */
	coop_share_count_unread(&conn->part, conn->ws ? 0 : conn->out.bytes);
}

void coop_http_conn_deadline(struct coop_http_conn *conn, unsigned ms)
{
	if (conn->phase == COOP_CONN_GONE)
		return;
	if (ms)
		(void)uv_timer_start(&conn->timer, on_deadline, ms, 0);
	else
		(void)uv_timer_stop(&conn->timer);
}

static void on_deadline(uv_timer_t *timer)
{
	struct coop_http_conn *conn = timer->data;

	if (conn->close_after_send)
		coop_http_conn_drop(conn);
	else if (conn->phase == COOP_CONN_HEAD && conn->head && !conn->out.bytes)
		coop_intake_refuse(conn, 408, "timeout", "the head of the request took too long");
	else if (conn->phase == COOP_CONN_BODY && conn->exchange && !conn->paused &&
		 !conn->out.bytes)
		coop_http_refuse(conn->exchange, 408, "timeout",
				 "the body of the request took too long");
	else if (coop_http_conn_asks(conn))
		coop_http_refuse(conn->exchange, 504, "timeout", "the keeper does not answer");
	else if (conn->phase == COOP_CONN_WS && coop_ws_expired(conn))
		return;
	else
		coop_http_conn_drop(conn);
}

/* What can be had now: a count, 0 at the end, -EAGAIN, or another error. */
static ssize_t receive(struct coop_http_conn *conn, void *buffer, size_t size)
{
	if (conn->tls)
		return coop_tls_read(conn->tls, buffer, size);
	ssize_t n = recv(conn->fd, buffer, size, MSG_DONTWAIT);
	if (n < 0)
		return errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : -errno;
	return n;
}

static ssize_t transmit(struct coop_http_conn *conn, struct iovec *iov, unsigned count)
{
	if (conn->tls)
		return coop_tls_write(conn->tls, iov[0].iov_base, iov[0].iov_len);
	struct msghdr message = {.msg_iov = iov, .msg_iovlen = count};
	ssize_t n = sendmsg(conn->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		return errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : -errno;
	return n;
}

/* The deadline of a connection that waits for nothing but bytes of the client. */
static unsigned usual_deadline(const struct coop_http_conn *conn)
{
	if (conn->phase == COOP_CONN_HEAD)
		return COOP_IDLE_MS;
	if (conn->phase == COOP_CONN_WS)
		return conn->net->ping_ms;
	return conn->phase == COOP_CONN_BODY && !conn->paused ? COOP_BODY_MS : 0;
}

/* A peer that takes nothing of an answer has its time for the next byte. While a head is being
 * read, and when a WebSocket is being closed, another deadline runs. */
static void mind_stuck(struct coop_http_conn *conn, bool was_blocked, bool progress)
{
	bool ours = conn->phase == COOP_CONN_BODY || conn->phase == COOP_CONN_ANSWER ||
		    (conn->phase == COOP_CONN_HEAD && !conn->head) ||
		    (conn->phase == COOP_CONN_WS && !coop_ws_closing(conn) && !conn->hung);

	if (!ours)
		return;
	if (conn->blocked && (progress || !was_blocked))
		coop_http_conn_deadline(conn, COOP_STUCK_MS);
	else if (!conn->blocked && was_blocked)
		coop_http_conn_deadline(conn, usual_deadline(conn));
}

/* 0 or an error. conn->blocked says whether something is left. */
static int send_some(struct coop_http_conn *conn)
{
	struct iovec iov[COOP_OUT_IOV];
	size_t before = conn->out.bytes;
	bool was_blocked = conn->blocked;

	for (int i = 0; i < SENDS_MAX && conn->out.bytes; i++) {
		ssize_t n = transmit(conn, iov, coop_out_front(&conn->out, iov));
		if (n == -EAGAIN)
			break;
		if (n < 0)
			return (int)n;
		conn->net->counts.bytes_sent += (uint64_t)n;
		coop_out_consume(&conn->out, (size_t)n);
	}
	conn->blocked = conn->out.bytes > 0;
	mind_stuck(conn, was_blocked, conn->out.bytes != before);
	return 0;
}

/* After the last byte: reads what the client still sends for a moment. Closing with unread bytes
 * would reset the connection, and could cost the client the answer. */
static void linger(struct coop_http_conn *conn)
{
	conn->phase = COOP_CONN_LINGER;
	if (conn->tls)
		coop_tls_end(conn->tls);
	(void)shutdown(conn->fd, SHUT_WR);
	if (!conn->running)
		coop_buf_clear(&conn->rest); /* else who works on it throws it away */
	conn->linger_end = uv_now(conn->net->loop) + COOP_LINGER_MAX_MS;
	coop_http_conn_deadline(conn, COOP_LINGER_MS);
	if (conn->eof)
		coop_http_conn_drop(conn);
}

void coop_http_conn_flush(struct coop_http_conn *conn)
{
	if (conn->phase == COOP_CONN_GONE)
		return;
	if (!conn->mute && send_some(conn) < 0) {
		/* What a WebSocket's client sent before it went is to be carried out all the
		 * same. */
		conn->mute = conn->phase == COOP_CONN_WS && !conn->paused;
		if (!conn->mute) {
			coop_http_conn_drop(conn);
			return;
		}
	}
	if (conn->mute) {
		coop_out_clear(&conn->out);
		conn->blocked = false;
	}
	coop_http_conn_count_unread(conn);
	if (!conn->out.bytes && conn->close_after_send && conn->phase != COOP_CONN_LINGER)
		linger(conn);
	coop_http_conn_watch(conn);
}

void coop_http_conn_send(struct coop_http_conn *conn, const void *data, size_t size, bool answer)
{
	if (conn->phase == COOP_CONN_GONE)
		return;
	if (coop_out_copy(&conn->out, data, size, answer) < 0)
		coop_http_conn_drop(conn);
	else if (!conn->blocked)
		coop_http_conn_flush(conn);
}

void coop_http_conn_finish(struct coop_http_conn *conn)
{
	conn->close_after_send = true;
	coop_http_conn_flush(conn);
}

void coop_http_conn_next(struct coop_http_conn *conn)
{
	bool whole = conn->head && conn->head->finished;

	if (conn->phase == COOP_CONN_GONE)
		return;
	/* The parser is at work on this request: coop_http_conn_run() comes back here. */
	if (conn->running) {
		conn->next_pending = true;
		return;
	}
	coop_head_free(conn->head);
	conn->head = NULL;
	conn->route = NULL;
	conn->paused = false;
	coop_buf_clear(&conn->body);
	(void)coop_share_hold(&conn->part, 0);
	if (!whole || !conn->keep_alive || conn->net->stopping) {
		coop_http_conn_finish(conn);
		return;
	}
	conn->phase = COOP_CONN_HEAD;
	coop_http_conn_deadline(conn, conn->blocked ? COOP_STUCK_MS : COOP_IDLE_MS);
	coop_http_conn_run(conn);
}

static bool wants_bytes(const struct coop_http_conn *conn)
{
	if (coop_buf_size(&conn->rest))
		return false;
	switch (conn->phase) {
	case COOP_CONN_HANDSHAKE:
	case COOP_CONN_LINGER:
		return true;
	case COOP_CONN_HEAD:
		/* A pipelining client that does not read its answers waits. */
		return conn->out.bytes <= COOP_ANSWERS_MAX && !conn->close_after_send;
	case COOP_CONN_BODY:
		return !conn->paused;
	case COOP_CONN_WS:
		return !conn->paused && conn->out.answers <= COOP_ANSWERS_MAX;
	case COOP_CONN_CHECK:
	case COOP_CONN_ANSWER:
	case COOP_CONN_GONE:
		break;
	}
	return false;
}

void coop_http_conn_watch(struct coop_http_conn *conn)
{
	int events = 0;
	/* TLS has to write before it reads on: bytes that wait to be read are no news then. */
	bool must_write = conn->tls && coop_tls_wants_write(conn->tls);

	if (conn->phase == COOP_CONN_GONE)
		return;
	if (wants_bytes(conn) && !conn->eof && !must_write)
		events |= UV_READABLE;
	/* Where bytes are not wanted the client may still go. */
	else if (!conn->eof && !conn->hung)
		events |= UV_DISCONNECT;
	if (conn->blocked || must_write)
		events |= UV_WRITABLE;
	if (events == conn->watched)
		return;
	conn->watched = events;
	if (events)
		(void)uv_poll_start(&conn->poll, events, on_poll);
	else
		(void)uv_poll_stop(&conn->poll);
}

/* Hands bytes to whoever wants them in this phase. How many were taken; fewer where it is no more
 * their turn. */
static size_t give(struct coop_http_conn *conn, const char *data, size_t size)
{
	if (conn->next_pending)
		return 0;
	/* Nothing more is served here; what comes is of no interest. */
	if (conn->close_after_send && conn->phase < COOP_CONN_WS)
		return size;
	switch (conn->phase) {
	case COOP_CONN_HEAD:
		return conn->out.bytes > COOP_ANSWERS_MAX ? 0 : coop_intake_head(conn, data, size);
	case COOP_CONN_BODY:
		return conn->paused ? 0 : coop_intake_body(conn, data, size);
	case COOP_CONN_WS:
		return conn->paused ? 0 : coop_ws_feed(conn, data, size);
	case COOP_CONN_LINGER:
		/* A client in the middle of a large upload would not see the answer if it were cut
		 * off now. */
		if (uv_now(conn->net->loop) < conn->linger_end)
			coop_http_conn_deadline(conn, COOP_LINGER_MS);
		return size;
	case COOP_CONN_HANDSHAKE:
	case COOP_CONN_CHECK:
	case COOP_CONN_ANSWER:
	case COOP_CONN_GONE:
		break;
	}
	return 0;
}

/* One step with the parser or the WebSocket at work, and then what was put off meanwhile. 0: no
 * more can be taken now. */
static size_t step(struct coop_http_conn *conn, const char *data, size_t size)
{
	conn->running = true;
	size_t used = give(conn, data, size);
	conn->running = false;
	return used;
}

/* Requests that are answered at once do not nest: the end of each comes back to this loop. */
static bool settle(struct coop_http_conn *conn)
{
	if (!conn->next_pending || conn->phase == COOP_CONN_GONE)
		return false;
	conn->next_pending = false;
	conn->settling = true;
	coop_http_conn_next(conn);
	conn->settling = false;
	return true;
}

static void after_input(struct coop_http_conn *conn)
{
	if (conn->phase == COOP_CONN_GONE)
		return;
	if (conn->phase == COOP_CONN_WS)
		coop_ws_fed(conn);
	if (conn->eof && !coop_buf_size(&conn->rest) && !conn->paused)
		coop_http_conn_drop(conn);
	else
		coop_http_conn_watch(conn);
}

void coop_http_conn_run(struct coop_http_conn *conn)
{
	bool progress = true;

	if (conn->running || conn->settling)
		return;
	while (progress && conn->phase != COOP_CONN_GONE) {
		size_t waiting = coop_buf_size(&conn->rest), used = 0;
		if (waiting)
			used = step(conn, (const char *)coop_buf_front(&conn->rest), waiting);
		if (conn->phase != COOP_CONN_GONE && used)
			coop_buf_consume(&conn->rest, used);
		progress = settle(conn) || used;
	}
	after_input(conn);
}

/* What has just been read. The rest waits for its turn. */
static void take(struct coop_http_conn *conn, const char *data, size_t size)
{
	bool progress = true;

	while (progress && conn->phase != COOP_CONN_GONE) {
		size_t used = size ? step(conn, data, size) : 0;
		data += used;
		size -= used;
		progress = settle(conn) || used;
	}
	if (conn->phase == COOP_CONN_GONE)
		return;
	if (size && coop_buf_append(&conn->rest, data, size) < 0)
		coop_http_conn_drop(conn);
	else
		after_input(conn);
}

static void on_end(struct coop_http_conn *conn)
{
	conn->eof = true;
	/* What a WebSocket's client sent before is carried out first; the rest has nobody to answer
	 * to. */
	if (conn->phase == COOP_CONN_WS && (coop_buf_size(&conn->rest) || conn->paused))
		coop_http_conn_watch(conn);
	else
		coop_http_conn_drop(conn);
}

static void on_readable(struct coop_http_conn *conn)
{
	static char buffer[COOP_READ_SIZE];

	for (int i = 0; i < (conn->tls ? TLS_READS_MAX : 1); i++) {
		if (!wants_bytes(conn))
			break;
		ssize_t n = receive(conn, buffer, sizeof buffer);
		if (n == -EAGAIN)
			break;
		if (n <= 0) {
			on_end(conn);
			return;
		}
		take(conn, buffer, (size_t)n);
	}
	coop_http_conn_watch(conn);
}

static void shake_hands(struct coop_http_conn *conn)
{
	int r = coop_tls_handshake(conn->tls);

	if (r == 0) {
		conn->phase = COOP_CONN_HEAD;
		coop_http_conn_deadline(conn, COOP_FIRST_BYTE_MS);
	} else if (r != -EAGAIN) {
		coop_http_conn_drop(conn);
		return;
	}
	coop_http_conn_watch(conn);
}

/* Less waits than a route wants to be told of. */
static void tell_writable(struct coop_http_conn *conn)
{
	if (conn->ws)
		coop_ws_writable(conn);
	else if (conn->exchange && conn->exchange->behaviour &&
		 conn->exchange->behaviour->writable && conn->out.bytes < COOP_HTTP_LOW)
		conn->exchange->behaviour->writable(conn->exchange);
}

/* The client of a WebSocket has gone. What it sent before is still to be carried out, and then
 * comes the end of file or the error; while its owner takes nothing, for a while. */
static void last_words(struct coop_http_conn *conn)
{
	if (!conn->paused) {
		on_readable(conn);
		return;
	}
	if (!conn->hung) {
		conn->hung = true;
		coop_http_conn_deadline(conn, COOP_HUNG_MS);
	}
	coop_http_conn_watch(conn);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
	struct coop_http_conn *conn = poll->data;

	if (conn->phase == COOP_CONN_GONE)
		return;
	if (conn->phase == COOP_CONN_HANDSHAKE) {
		shake_hands(conn);
		if (conn->phase != COOP_CONN_HEAD)
			return;
		events |= UV_READABLE; /* what came behind the handshake may be in memory already */
	}
	if (status < 0)
		conn->watched = 0; /* the loop has stopped to look */
	if (status < 0 || (events & UV_DISCONNECT)) {
		if (conn->phase == COOP_CONN_WS)
			last_words(conn);
		else
			coop_http_conn_drop(conn);
		return;
	}
	/* TLS may have to write before it can read on. */
	if ((events & UV_WRITABLE) && conn->tls && coop_tls_wants_write(conn->tls))
		events |= UV_READABLE;
	if (events & UV_WRITABLE) {
		coop_http_conn_flush(conn);
		if (conn->phase != COOP_CONN_GONE)
			tell_writable(conn);
		if (conn->phase == COOP_CONN_HEAD)
			coop_http_conn_run(conn);
	}
	if ((events & UV_READABLE) && conn->phase != COOP_CONN_GONE)
		on_readable(conn);
}
