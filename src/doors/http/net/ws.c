#include "doors/http/net/ws.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <wslay/wslay.h>

#include "base/buf.h"
#include "base/json/jsonw.h"
#include "base/later.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "doors/http/net/conn.h"
#include "doors/http/net/net.h"
#include "doors/http/net/out.h"
#include "doors/http/net/share.h"
#include "doors/http/net/ws_conn.h"
#include "doors/http/net/ws_sizes.h"

#define GUID "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
#define CLOSE_MS 2000u
/* Bytes that the kernel takes ahead of a client whose progress matters. */
#define UNSENT_MAX (128 << 10)

struct coop_ws {
	struct coop_http_conn *conn;
	wslay_event_context_ptr context;
	const struct coop_ws_behaviour *behaviour;
	void *user;
	const char *in; /* while coop_ws_feed() runs */
	size_t in_size;
	struct coop_ws_sizes sizes;
	bool over;      /* its owner has been told */
	bool closing;   /* a close frame of ours is on its way */
	bool asked;     /* by its owner */
	bool broken;    /* the client broke the rules */
	unsigned fault; /* the code that says which; 0: what the library says */
	/* What to say when the client does not close by itself; code 0: nothing. */
	unsigned after_ms, after_code;
	const char *after_reason; /* a constant */
	bool timer;               /* the connection's deadline is about closing */
	struct coop_later kick;   /* bytes came with the upgrade */
};

void *coop_ws_context(const struct coop_ws *ws)
{
	return ws->user;
}

static ssize_t on_receive(wslay_event_context_ptr context, uint8_t *buffer, size_t size, int flags,
			  void *user)
{
	struct coop_ws *ws = user;

	if (!ws->in_size || ws->conn->paused || ws->over) {
		wslay_event_set_error(context, WSLAY_ERR_WOULDBLOCK);
		return -1;
	}
	size_t part = size < ws->in_size ? size : ws->in_size;
	memcpy(buffer, ws->in, part);
	ws->in += part;
	ws->in_size -= part;
	return (ssize_t)part;
}

/* Pongs and the close frame: whole ones, into the same queue as everything else. */
static ssize_t on_send(wslay_event_context_ptr context, const uint8_t *data, size_t size, int flags,
		       void *user)
{
	struct coop_ws *ws = user;
	unsigned code = ws->fault ? ws->fault : COOP_WS_PROTOCOL;
	const uint8_t with_code[] = {0x88, 2, (uint8_t)(code >> 8), (uint8_t)code};
	/* Where a frame's head is none, or its close frame is, the library closes without saying
	 * why. */
	bool mute = size == 2 && data[0] == 0x88 && data[1] == 0 &&
		    (ws->fault || (!ws->asked && !wslay_event_get_close_received(context)));
	const uint8_t *bytes = mute ? with_code : data;

	if (coop_out_copy(&ws->conn->out, bytes, mute ? sizeof with_code : size, true) < 0) {
		wslay_event_set_error(context, WSLAY_ERR_CALLBACK_FAILURE);
		return -1;
	}
	return (ssize_t)size;
}

static void on_message(wslay_event_context_ptr context,
		       const struct wslay_event_on_msg_recv_arg *arg, void *user)
{
	struct coop_ws *ws = user;

	/* At once: it would not go out any more if a close came right behind. */
	if (arg->opcode == WSLAY_PING && !ws->over)
		(void)wslay_event_send(context);
	if (wslay_is_ctrl_frame(arg->opcode) || ws->over || ws->closing)
		return;
	char *text = coop_mem_alloc(arg->msg_length + 1);
	if (!text) {
		coop_http_conn_drop(ws->conn);
		return;
	}
	if (arg->msg_length)
		memcpy(text, arg->msg, arg->msg_length);
	text[arg->msg_length] = 0;
	ws->behaviour->message(ws, arg->opcode == WSLAY_TEXT_FRAME, text, arg->msg_length);
	free(text);
}

static void on_kick(struct coop_later *item)
{
	coop_http_conn_run(COOP_LATER_OWNER(item, struct coop_ws, kick)->conn);
}

struct coop_ws *coop_ws_new(struct coop_http_conn *conn, const struct coop_ws_behaviour *behaviour,
			    void *context)
{
	static const struct wslay_event_callbacks callbacks = {
		.recv_callback = on_receive,
		.send_callback = on_send,
		.on_msg_recv_callback = on_message,
	};
	struct coop_ws *ws = coop_mem_zalloc(sizeof *ws);

	if (!ws)
		return NULL;
	ws->conn = conn;
	ws->behaviour = behaviour;
	ws->user = context;
	ws->kick.run = on_kick;
	if (wslay_event_context_server_init(&ws->context, &callbacks, ws) < 0) {
		free(ws);
		return NULL;
	}
	wslay_event_config_set_max_recv_msg_length(ws->context, COOP_WS_MESSAGE_MAX);
	return ws;
}

void coop_ws_free(struct coop_ws *ws)
{
	if (!ws)
		return;
	coop_later_cancel(&ws->kick);
	wslay_event_context_free(ws->context);
	free(ws);
}

void coop_ws_accept(struct coop_ws *ws, const char *key)
{
	char joined[64], answer[256];
	unsigned char digest[EVP_MAX_MD_SIZE];
	char accept[64];
	unsigned size = 0;
	int n = snprintf(joined, sizeof joined, "%.24s" GUID, key);

	(void)EVP_Digest(joined, (size_t)n, digest, &size, EVP_sha1(), NULL);
	coop_base64_encode(digest, size, accept);
	n = snprintf(answer, sizeof answer,
		     "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
		     "Connection: Upgrade\r\nSec-WebSocket-Accept: %.*s\r\n\r\n",
		     (int)coop_base64_length(size), accept);
	if (coop_out_copy(&ws->conn->out, answer, (size_t)n, false) < 0)
		coop_http_conn_drop(ws->conn);
}

void coop_ws_begin(struct coop_ws *ws)
{
	struct coop_http_conn *conn = ws->conn;

	conn->ws = ws;
	conn->paused = false;
	conn->net->counts.upgrades++;
	conn->net->counts.websockets++;
	coop_http_conn_flush(conn);
	if (conn->phase != COOP_CONN_WS)
		return;
	/* An upgrade that was decided on later: what came right behind it has no other event to be
	 * looked at. Not now, as the owner does not know its socket yet. */
	if (!conn->running && coop_buf_size(&conn->rest))
		coop_later(&conn->net->laters, &ws->kick);
	if (!conn->blocked)
		coop_http_conn_deadline(conn, conn->net->ping_ms);
}

void coop_ws_over(struct coop_http_conn *conn)
{
	struct coop_ws *ws = conn->ws;

	if (!ws || ws->over)
		return;
	ws->over = true;
	conn->net->counts.websockets--;
	if (ws->behaviour->over)
		ws->behaviour->over(ws);
}

/* What comes behind this is of no interest. */
static void break_off(struct coop_ws *ws, unsigned code)
{
	ws->broken = ws->closing = ws->asked = true;
	ws->fault = code;
	(void)wslay_event_queue_close(ws->context, (uint16_t)code, NULL, 0);
}

bool coop_ws_lost_message(const struct coop_ws *ws)
{
	return ws->fault == COOP_WS_TOO_LARGE || ws->fault == COOP_WS_TRY_LATER;
}

size_t coop_ws_feed(struct coop_http_conn *conn, const char *data, size_t size)
{
	struct coop_ws *ws = conn->ws;

	if (ws->broken || !wslay_event_get_read_enabled(ws->context))
		return size; /* behind a close frame nothing counts */
	ws->in = data;
	ws->in_size = size;
	if (wslay_event_recv(ws->context) < 0)
		ws->broken = true;
	/* Nothing of ours may follow the close frame that is queued now. */
	if (!wslay_event_get_read_enabled(ws->context))
		ws->closing = true;
	size_t used = ws->broken ? size : size - ws->in_size;
	ws->in_size = 0;
	unsigned code =
		coop_ws_sizes_look(&ws->sizes, (const uint8_t *)data, used, COOP_WS_MESSAGE_MAX);
	if (!code && !coop_share_hold(&conn->part, (size_t)ws->sizes.message))
		code = COOP_WS_TRY_LATER;
	if (code && !ws->over)
		break_off(ws, code);
	return used;
}

/* The close frame has been sent and received, or the client is not worth waiting for: the end
 * follows what waits. */
static bool done(const struct coop_ws *ws)
{
	return wslay_event_get_close_sent(ws->context) &&
	       (wslay_event_get_close_received(ws->context) || ws->broken ||
		!wslay_event_get_read_enabled(ws->context));
}

static void start_timer(struct coop_ws *ws)
{
	if (ws->timer || ws->over || ws->conn->out.bytes)
		return;
	if (ws->closing || ws->after_code) {
		ws->timer = true;
		coop_http_conn_deadline(ws->conn, ws->closing ? CLOSE_MS : ws->after_ms);
	}
}

void coop_ws_fed(struct coop_http_conn *conn)
{
	struct coop_ws *ws = conn->ws;

	if (ws->over)
		return;
	if (wslay_event_want_write(ws->context) && wslay_event_send(ws->context) < 0) {
		coop_http_conn_drop(conn);
		return;
	}
	if (done(ws)) {
		/* Its owner hears of it now: the rest is between the two ends of the connection. */
		coop_ws_over(conn);
		conn->paused = false;
		ws->timer = true;
		coop_http_conn_deadline(conn, CLOSE_MS);
		coop_http_conn_finish(conn);
		return;
	}
	if (conn->out.bytes && !conn->blocked)
		coop_http_conn_flush(conn);
	if (conn->phase == COOP_CONN_WS)
		start_timer(ws);
}

void coop_ws_writable(struct coop_http_conn *conn)
{
	struct coop_ws *ws = conn->ws;

	start_timer(ws);
	if (!ws->over && !ws->closing && ws->behaviour->taking)
		ws->behaviour->taking(ws);
	if (!ws->over && !ws->closing && conn->out.bytes < COOP_WS_LOW && ws->behaviour->writable)
		ws->behaviour->writable(ws);
}

bool coop_ws_closing(const struct coop_http_conn *conn)
{
	return conn->ws && conn->ws->timer;
}

/* Proxies cut a connection over which nothing comes for a while. Whether it is answered is of no
 * interest: clients that do not read do not answer. */
static void send_ping(struct coop_http_conn *conn)
{
	static const uint8_t ping[] = {0x89, 0};

	coop_http_conn_deadline(conn, conn->net->ping_ms);
	coop_http_conn_send(conn, ping, sizeof ping, false);
}

bool coop_ws_expired(struct coop_http_conn *conn)
{
	struct coop_ws *ws = conn->ws;

	if (!ws->timer && !ws->closing && !ws->over && !conn->blocked && !conn->hung) {
		send_ping(conn);
		return true;
	}
	if (!ws->timer || ws->closing || ws->over)
		return false;
	ws->timer = false;
	coop_ws_close(ws, ws->after_code, ws->after_reason);
	return true;
}

size_t coop_ws_header(uint8_t ret[COOP_WS_HEADER_MAX], size_t size)
{
	ret[0] = 0x81; /* the only and last frame of a text */
	if (size < 126) {
		ret[1] = (uint8_t)size;
		return 2;
	}
	if (size < 65536) {
		ret[1] = 126;
		ret[2] = (uint8_t)(size >> 8);
		ret[3] = (uint8_t)size;
		return 4;
	}
	ret[1] = 127;
	for (int i = 0; i < 8; i++)
		ret[2 + i] = (uint8_t)((uint64_t)size >> (56 - 8 * i));
	return 10;
}

static bool deaf(const struct coop_ws *ws)
{
	return ws->over || ws->closing || ws->conn->phase != COOP_CONN_WS;
}

void coop_ws_send_text(struct coop_ws *ws, const char *text, size_t size)
{
	uint8_t header[COOP_WS_HEADER_MAX];
	size_t header_size = coop_ws_header(header, size);
	struct coop_http_conn *conn = ws->conn;

	if (deaf(ws))
		return;
	if (coop_out_copy(&conn->out, header, header_size, true) < 0 ||
	    coop_out_copy(&conn->out, text, size, true) < 0)
		coop_http_conn_drop(conn);
	else if (!conn->blocked)
		coop_http_conn_flush(conn);
}

void coop_ws_send_shared(struct coop_ws *ws, struct coop_http_shared *block, size_t from, size_t to)
{
	struct coop_http_conn *conn = ws->conn;

	if (deaf(ws))
		return;
	if (coop_out_share(&conn->out, block, from, to) < 0)
		coop_http_conn_drop(conn);
	else if (!conn->blocked)
		coop_http_conn_flush(conn);
}

void coop_ws_send_json(struct coop_ws *ws, struct coop_buf *text, const struct coop_jsonw *w)
{
	if (ws && w->failed) /* a client that waits for an answer must not wait for ever */
		coop_ws_close(ws, COOP_WS_INTERNAL, "out of memory");
	else if (ws)
		coop_ws_send_text(ws, (const char *)coop_buf_front(text), coop_buf_size(text));
	coop_buf_clear(text);
}

size_t coop_ws_pending(const struct coop_ws *ws)
{
	return ws->conn->out.bytes;
}

void coop_ws_expect_little(struct coop_ws *ws)
{
	int bytes = UNSENT_MAX;

	(void)setsockopt(ws->conn->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

void coop_ws_pause(struct coop_ws *ws)
{
	ws->conn->paused = true;
	coop_http_conn_watch(ws->conn);
}

void coop_ws_resume(struct coop_ws *ws)
{
	if (!ws->conn->paused)
		return;
	ws->conn->paused = false;
	coop_http_conn_run(ws->conn);
}

void coop_ws_close(struct coop_ws *ws, unsigned code, const char *reason)
{
	if (deaf(ws))
		return;
	ws->closing = ws->asked = true;
	ws->timer = false;
	ws->conn->paused = false; /* the client's close frame is to be seen */
	(void)wslay_event_queue_close(ws->context, (uint16_t)code, (const uint8_t *)reason,
				      strlen(reason));
	if (!ws->conn->running)
		coop_http_conn_run(ws->conn);
}

void coop_ws_close_after(struct coop_ws *ws, unsigned ms, unsigned code, const char *reason)
{
	if (deaf(ws))
		return;
	ws->after_ms = ms;
	ws->after_code = code;
	ws->after_reason = reason;
	start_timer(ws);
}

void coop_ws_stop(struct coop_ws *ws)
{
	if (deaf(ws))
		return;
	if (ws->behaviour->stopping)
		ws->behaviour->stopping(ws);
	coop_ws_close(ws, COOP_WS_RESTART, "the gateway stops");
}
