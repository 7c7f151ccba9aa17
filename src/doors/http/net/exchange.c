#include "doors/http/net/exchange.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/jsonw.h"
#include "doors/http/net/conn.h"
#include "doors/http/net/head.h"
#include "doors/http/net/intake.h"
#include "doors/http/net/net.h"
#include "doors/http/net/out.h"
#include "doors/http/net/share.h"
#include "doors/http/net/ws_conn.h"

#define HEAD_TEXT 1024

const char *coop_http_reason(unsigned status)
{
	static const struct {
		unsigned status;
		const char *reason;
	} reasons[] = {
		{200, "OK"},
		{201, "Created"},
		{202, "Accepted"},
		{204, "No Content"},
		{400, "Bad Request"},
		{401, "Unauthorized"},
		{403, "Forbidden"},
		{404, "Not Found"},
		{405, "Method Not Allowed"},
		{406, "Not Acceptable"},
		{408, "Request Timeout"},
		{409, "Conflict"},
		{413, "Content Too Large"},
		{414, "URI Too Long"},
		{415, "Unsupported Media Type"},
		{426, "Upgrade Required"},
		{429, "Too Many Requests"},
		{431, "Request Header Fields Too Large"},
		{500, "Internal Server Error"},
		{501, "Not Implemented"},
		{503, "Service Unavailable"},
		{504, "Gateway Timeout"},
		{505, "HTTP Version Not Supported"},
		{507, "Insufficient Storage"},
	};

	for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
		if (reasons[i].status == status)
			return reasons[i].reason;
	}
	return "Answer";
}

const char *coop_http_header(const struct coop_http_exchange *exchange, const char *name)
{
	return coop_head_get(exchange->conn->head, name);
}

void coop_http_expect(struct coop_http_exchange *exchange,
		      const struct coop_http_behaviour *behaviour, void *context)
{
	exchange->behaviour = behaviour;
	exchange->context = context;
}

void coop_http_add_header(struct coop_http_exchange *exchange, const char *line)
{
	size_t used = strlen(exchange->extra);

	if (used + strlen(line) + 3 <= sizeof exchange->extra)
		(void)snprintf(exchange->extra + used, sizeof exchange->extra - used, "%s\r\n",
			       line);
}

void coop_exchange_over(struct coop_http_conn *conn)
{
	struct coop_http_exchange *exchange = conn->exchange;

	if (!exchange)
		return;
	conn->exchange = NULL;
	if (exchange->behaviour && exchange->behaviour->over)
		exchange->behaviour->over(exchange);
	conn->net->calls->over(exchange);
	for (int i = 0; i < COOP_HTTP_PARAMS_MAX; i++)
		free(exchange->params[i]);
	json_decref(exchange->json);
	free(exchange);
}

static void finish(struct coop_http_exchange *exchange)
{
	struct coop_http_conn *conn = exchange->conn;

	coop_exchange_over(conn);
	coop_http_conn_flush(conn);
	coop_http_conn_next(conn);
}

static bool is_head(const struct coop_http_exchange *exchange)
{
	return strcmp(exchange->method, "HEAD") == 0;
}

static bool has_body(unsigned status)
{
	return status != 204 && status >= 200;
}

/* Queues the head of the answer. Which way the length is told depends on what is known and on the
 * client. */
static void put_head(struct coop_http_exchange *exchange, unsigned status, const char *type,
		     int64_t length)
{
	struct coop_http_conn *conn = exchange->conn;
	bool old = conn->head->parser.http_minor == 0;
	char text[HEAD_TEXT], framing[64] = "";

	exchange->begun = true;
	exchange->remaining = length;
	exchange->chunked = length < 0 && !old;
	/* The request's body has not come in full: the next request could not be told from it. */
	if (!conn->head->finished || conn->net->stopping || (length < 0 && old))
		conn->keep_alive = false;
	if (length >= 0 && has_body(status))
		(void)snprintf(framing, sizeof framing, "Content-Length: %" PRId64 "\r\n", length);
	else if (exchange->chunked)
		(void)snprintf(framing, sizeof framing, "Transfer-Encoding: chunked\r\n");
	int size = snprintf(text, sizeof text,
			    "HTTP/1.1 %u %s\r\nContent-Type: %s\r\n%sCache-Control: no-store\r\n"
			    "X-Content-Type-Options: nosniff\r\n%s%s\r\n",
			    status, coop_http_reason(status), type, framing, exchange->extra,
			    conn->keep_alive ? "" : "Connection: close\r\n");
	if (status >= 400)
		conn->net->counts.refused++;
	if (coop_out_copy(&conn->out, text, (size_t)size, false) < 0)
		coop_http_conn_drop(conn);
}

static void refuse_unread(struct coop_http_exchange *exchange)
{
	coop_http_refuse(exchange, 429, "quota_exceeded",
			 "the clients of this token's agent leave too much of their answers unread "
			 "(%u MiB may wait)",
			 COOP_SHARE_UNREAD_MAX >> 20);
}

void coop_http_answer(struct coop_http_exchange *exchange, unsigned status, const char *type,
		      const void *body, size_t size)
{
	struct coop_http_conn *conn = exchange->conn;

	/* What is small is told: whoever is over the bound can still look, kill and release. */
	if (size > COOP_HTTP_LOW && !coop_share_may_wait(&conn->part, size)) {
		refuse_unread(exchange);
		return;
	}
	put_head(exchange, status, type, (int64_t)size);
	if (conn->phase == COOP_CONN_GONE)
		return;
	if (!is_head(exchange) && has_body(status) &&
	    coop_out_copy(&conn->out, body, size, false) < 0)
		coop_http_conn_drop(conn);
	else
		finish(exchange);
}

void coop_http_answer_json(struct coop_http_exchange *exchange, unsigned status, const char *json,
			   size_t size)
{
	coop_http_answer(exchange, status, "application/json", json, size);
}

void coop_http_refuse(struct coop_http_exchange *exchange, unsigned status, const char *code,
		      const char *format, ...)
{
	char message[512];
	struct coop_buf body = {0};
	struct coop_jsonw w = {.out = &body};
	va_list args;

	va_start(args, format);
	(void)vsnprintf(message, sizeof message, format, args);
	va_end(args);
	coop_jsonw_begin(&w, NULL);
	coop_jsonw_string(&w, "error", code);
	coop_jsonw_string(&w, "message", message);
	coop_jsonw_end(&w);
	if (exchange->begun || w.failed)
		coop_http_abort(exchange);
	else
		coop_http_answer_json(exchange, status, (const char *)coop_buf_front(&body),
				      coop_buf_size(&body));
	coop_buf_clear(&body);
}

void coop_http_begin(struct coop_http_exchange *exchange, unsigned status, const char *type,
		     int64_t length)
{
	struct coop_http_conn *conn = exchange->conn;

	put_head(exchange, status, type, length);
	if (!conn->blocked)
		coop_http_conn_flush(conn);
}

void coop_http_write(struct coop_http_exchange *exchange, const void *data, size_t size)
{
	struct coop_http_conn *conn = exchange->conn;
	char framing[32];
	int r = 0;

	if (!size || is_head(exchange))
		return;
	if (size > COOP_HTTP_PIECE && !coop_share_may_wait(&conn->part, size)) {
		coop_http_abort(
			exchange); /* it has begun: all that can be told is that it is cut */
		return;
	}
	if (exchange->remaining >= 0) {
		if ((int64_t)size > exchange->remaining)
			size = (size_t)exchange->remaining;
		exchange->remaining -= (int64_t)size;
	}
	if (exchange->chunked) {
		int n = snprintf(framing, sizeof framing, "%zx\r\n", size);
		r = coop_out_copy(&conn->out, framing, (size_t)n, false);
	}
	if (r == 0)
		r = coop_out_copy(&conn->out, data, size, false);
	if (r == 0 && exchange->chunked)
		r = coop_out_copy(&conn->out, "\r\n", 2, false);
	if (r < 0)
		coop_http_conn_drop(conn);
	else if (!conn->blocked)
		coop_http_conn_flush(conn);
	else
		coop_http_conn_count_unread(conn);
}

size_t coop_http_pending(const struct coop_http_exchange *exchange)
{
	return exchange->conn->out.bytes;
}

void coop_http_end(struct coop_http_exchange *exchange)
{
	struct coop_http_conn *conn = exchange->conn;

	if (exchange->remaining > 0 && !is_head(exchange)) {
		coop_http_abort(exchange);
		return;
	}
	if (exchange->chunked && !is_head(exchange) &&
	    coop_out_copy(&conn->out, "0\r\n\r\n", 5, false) < 0)
		coop_http_conn_drop(conn);
	else
		finish(exchange);
}

void coop_http_abort(struct coop_http_exchange *exchange)
{
	coop_http_conn_drop(exchange->conn);
}

bool coop_http_hold(struct coop_http_exchange *exchange, size_t bytes)
{
	return coop_share_hold(&exchange->conn->part, bytes);
}

void coop_http_pause(struct coop_http_exchange *exchange)
{
	struct coop_http_conn *conn = exchange->conn;

	conn->paused = true;
	if (conn->phase == COOP_CONN_BODY)
		coop_http_conn_deadline(conn, 0);
	coop_http_conn_watch(conn);
}

void coop_http_resume(struct coop_http_exchange *exchange)
{
	struct coop_http_conn *conn = exchange->conn;

	conn->paused = false;
	if (conn->phase == COOP_CONN_BODY)
		coop_http_conn_deadline(conn, COOP_BODY_MS);
	coop_http_conn_run(conn);
}

struct coop_ws *coop_http_upgrade(struct coop_http_exchange *exchange,
				  const struct coop_ws_behaviour *behaviour, void *context)
{
	struct coop_http_conn *conn = exchange->conn;
	struct coop_ws *ws = coop_ws_new(conn, behaviour, context);

	if (!ws) {
		coop_http_refuse(exchange, 503, "sandbox_overloaded", "out of memory");
		return NULL;
	}
	coop_ws_accept(ws, coop_http_header(exchange, "sec-websocket-key"));
	if (conn->phase == COOP_CONN_GONE) {
		coop_ws_free(ws); /* it never became the connection's */
		return NULL;
	}
	coop_exchange_over(conn);
	conn->phase = COOP_CONN_WS;
	coop_http_conn_deadline(conn, 0);
	coop_ws_begin(ws);
	return conn->phase == COOP_CONN_GONE ? NULL : ws;
}
