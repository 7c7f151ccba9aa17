/* One connection of a client: bytes in, bytes out, deadlines, and which request is being served.
 * Reading stops while an answer is being made, so that a client has one request at a time and its
 * further bytes wait in the kernel. */
#ifndef COOP_HTTP_CONN_H
#define COOP_HTTP_CONN_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/text/netname.h"
#include "doors/http/net/exchange.h"
#include "doors/http/net/net.h"
#include "doors/http/net/out.h"
#include "doors/http/net/share.h"

/* How long clients may take, in milliseconds. Streams and WebSockets have no limit but that of a
 * peer that takes nothing. */
#define COOP_FIRST_BYTE_MS 60000u
#define COOP_HEAD_MS 10000u   /* from its first byte; more bytes do not extend it */
#define COOP_BODY_MS 60000u   /* without a byte */
#define COOP_IDLE_MS 75000u   /* between requests */
#define COOP_STUCK_MS 600000u /* an answer of which nothing is taken */
/* What an answered client still sends is read and thrown away: until it is silent for so long, and
 * at most so long. */
#define COOP_LINGER_MS 1000u
#define COOP_LINGER_MAX_MS 30000u
#define COOP_HUNG_MS 10000u /* what a WebSocket's client left behind may wait for its owner */
#define COOP_READ_SIZE (64u << 10)
/* No further bytes are read while so many of the answers to what was read wait. */
#define COOP_ANSWERS_MAX (64u << 10)

struct coop_head;
struct coop_http_route;
struct coop_tls_conn;
struct coop_user;
struct coop_ws;

enum coop_http_conn_phase {
	COOP_CONN_HANDSHAKE, /* of TLS */
	COOP_CONN_HEAD,      /* between requests, or reading a head */
	COOP_CONN_CHECK,     /* whose request it is, and for what, is being found out */
	COOP_CONN_BODY,
	COOP_CONN_ANSWER, /* the request is whole, the answer is not */
	COOP_CONN_WS,
	COOP_CONN_LINGER, /* told to go; what still comes is thrown away */
	COOP_CONN_GONE,   /* waits for its handles to be closed */
};

struct coop_http_conn {
	struct coop_http_net *net;
	struct coop_link link;     /* among all */
	struct coop_link stranger; /* among those that have shown no token yet */
	int fd;
	struct coop_tls_conn *tls; /* NULL: plain */
	uv_poll_t poll;
	uv_timer_t timer;
	unsigned open_handles;
	int watched; /* what poll looks for */
	enum coop_http_conn_phase phase;
	bool local;    /* over a Unix socket */
	bool has_peer; /* it has an address */
	struct coop_address peer;
	uint64_t source;   /* whose failures are counted together: of the latest request's client */
	bool running;      /* a parser is at work on its bytes */
	bool next_pending; /* the exchange ended meanwhile */
	bool settling;     /* coop_http_conn_run() is on the stack */
	bool blocked;      /* the kernel took less than there was */
	bool paused;       /* by the route or the WebSocket's owner */
	bool keep_alive;   /* after this exchange */
	bool close_after_send;
	bool mute; /* it takes no more bytes of ours */
	bool hung; /* it went while its owner took nothing */
	bool eof;  /* the client has sent its last byte */
	struct coop_out out;
	struct coop_buf rest;   /* read, but not its turn yet: at most COOP_READ_SIZE */
	struct coop_head *head; /* of the current request */
	const struct coop_http_route *route;
	struct coop_buf body; /* collected, for routes that take it whole */
	struct coop_http_exchange *exchange;
	struct coop_user *user;      /* of the latest request; it is held */
	struct coop_share_part part; /* of what that user's agent may have */
	struct coop_ws *ws;
	uint64_t linger_end; /* by the loop's clock */
	uint64_t serial;     /* of its latest request */
};

/* Takes over an accepted, non-blocking socket; `peer` is whose, NULL: it is a Unix one. Without
 * memory it is closed. */
void coop_http_conn_open(struct coop_http_net *net, int fd, bool tls,
			 const struct coop_address *peer);

/* Goes at once, telling whoever has a part in it. */
void coop_http_conn_drop(struct coop_http_conn *conn);

/* Whether somebody is finding out whose request it is. */
static inline bool coop_http_conn_asks(const struct coop_http_conn *conn)
{
	return conn->phase == COOP_CONN_CHECK && conn->exchange;
}

/* Makes the connection the user's, with a part in the share, instead of whose it was before. What
 * is held of the user goes with it, by the call `left`. -EMFILE: the share has as many as it may,
 * and nothing has changed. */
int coop_http_conn_enter(struct coop_http_conn *conn, struct coop_user *user,
			 struct coop_agent_share *share);
/* What waits for its client has changed. */
void coop_http_conn_count_unread(struct coop_http_conn *conn);

/* Queues bytes and sends what the kernel takes. Failing ends the connection, so look at the phase
 * where that matters. */
void coop_http_conn_send(struct coop_http_conn *conn, const void *data, size_t size, bool answer);
void coop_http_conn_flush(struct coop_http_conn *conn);
/* Looks again at what to poll for, after a change of phase, pause or queue. */
void coop_http_conn_watch(struct coop_http_conn *conn);
/* Goes on with bytes that waited. */
void coop_http_conn_run(struct coop_http_conn *conn);
void coop_http_conn_deadline(struct coop_http_conn *conn, unsigned ms);

/* The exchange is over: keeps the connection for the next request or says goodbye. */
void coop_http_conn_next(struct coop_http_conn *conn);
/* Sends what waits, then ends the connection without cutting off what was sent. */
void coop_http_conn_finish(struct coop_http_conn *conn);

#endif
