#include "doors/http/net/intake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/mem.h"
#include "doors/http/net/conn.h"
#include "doors/http/net/exchange.h"
#include "doors/http/net/head.h"
#include "doors/http/net/net.h"
#include "doors/http/net/out.h"
#include "doors/http/net/route.h"
#include "doors/http/net/share.h"

#define JSON_MAX (1u << 20)

void coop_intake_refuse(struct coop_http_conn *conn, unsigned status, const char *code,
			const char *message)
{
	char body[512], head[256];
	int size =
		snprintf(body, sizeof body, "{\"error\":\"%s\",\"message\":\"%s\"}", code, message);
	int head_size = snprintf(head, sizeof head,
				 "HTTP/1.1 %u %s\r\nContent-Type: application/json\r\n"
				 "Content-Length: %d\r\nConnection: close\r\n\r\n",
				 status, coop_http_reason(status), size);

	conn->net->counts.refused++;
	conn->close_after_send = true;
	coop_http_conn_deadline(conn, COOP_LINGER_MS);
	if (coop_out_copy(&conn->out, head, (size_t)head_size, false) < 0 ||
	    coop_out_copy(&conn->out, body, (size_t)size, false) < 0)
		coop_http_conn_drop(conn);
	else
		coop_http_conn_flush(conn);
}

/* The exchange for a complete head. NULL without memory. */
static struct coop_http_exchange *make_exchange(struct coop_http_conn *conn)
{
	struct coop_head *head = conn->head;
	struct coop_http_exchange *exchange = coop_mem_zalloc(sizeof *exchange);
	char *query = strchr(head->target, '?');

	if (!exchange)
		return NULL;
	exchange->net = conn->net;
	exchange->conn = conn;
	exchange->method = llhttp_method_name((llhttp_method_t)head->parser.method);
	if (query)
		*query++ = 0;
	head->target[strcspn(head->target, "#")] = 0;
	exchange->path = head->target;
	exchange->query = query ? query : head->target + strlen(head->target);
	exchange->upgrade = coop_head_upgrades(head);
	exchange->body_length =
		head->parser.flags & F_CONTENT_LENGTH ? (int64_t)head->parser.content_length : -1;
	return exchange;
}

static void call_route(struct coop_http_conn *conn)
{
	conn->phase = conn->head->finished ? COOP_CONN_ANSWER : COOP_CONN_BODY;
	if (conn->phase == COOP_CONN_ANSWER)
		coop_http_conn_deadline(conn, 0);
	conn->route->handle(conn->exchange);
}

/* The body of a route that takes it whole is there. */
static void call_with_json(struct coop_http_conn *conn)
{
	struct coop_http_exchange *exchange = conn->exchange;
	size_t size = coop_buf_size(&conn->body);
	json_error_t fault;

	exchange->json = size ? json_loadb((const char *)coop_buf_front(&conn->body), size,
					   JSON_REJECT_DUPLICATES, &fault)
			      : json_object();
	coop_buf_clear(&conn->body);
	if (!json_is_object(exchange->json))
		coop_http_refuse(exchange, 400, "invalid_argument",
				 "the body is no JSON object%s%s", exchange->json ? "" : ": ",
				 exchange->json ? "" : fault.text);
	else
		call_route(conn);
}

static size_t json_max(const struct coop_http_route *route)
{
	return route->body_max ? route->body_max : JSON_MAX;
}

static void send_continue(struct coop_http_conn *conn)
{
	static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
	const char *expect = coop_head_get(conn->head, "expect");

	if (expect && strcasecmp(expect, "100-continue") == 0 && conn->head->parser.http_minor == 1)
		coop_http_conn_send(conn, text, sizeof text - 1, false);
}

/* On to the route, or to the body that it takes first. */
static void enter_route(struct coop_http_conn *conn)
{
	const struct coop_http_route *route = conn->route;
	struct coop_http_exchange *exchange = conn->exchange;
	uint64_t serial = conn->serial;

	if (route->body == COOP_BODY_JSON && exchange->body_length > (int64_t)json_max(route)) {
		coop_http_refuse(exchange, 413, "too_large", "the body is larger than %zu bytes",
				 json_max(route));
		return;
	}
	if (conn->head->finished) {
		if (route->body == COOP_BODY_JSON) {
			call_with_json(conn);
			return;
		}
		call_route(conn);
		/* A streamed body that is empty ends at once. */
		if (route->body == COOP_BODY_STREAM && conn->exchange && conn->serial == serial &&
		    exchange->behaviour && exchange->behaviour->body_end)
			exchange->behaviour->body_end(exchange);
		return;
	}
	conn->phase = COOP_CONN_BODY;
	coop_http_conn_deadline(conn, COOP_BODY_MS);
	send_continue(conn);
	if (conn->phase == COOP_CONN_BODY && route->body == COOP_BODY_STREAM)
		call_route(conn);
}

void coop_intake_admit(struct coop_http_exchange *exchange, const struct coop_http_route *route)
{
	struct coop_http_conn *conn = exchange->conn;

	conn->route = route;
	enter_route(conn);
	/* What waits may go on, unless it is the parser that has come here. */
	if (!conn->running)
		coop_http_conn_run(conn);
}

static void on_head(struct coop_http_conn *conn)
{
	struct coop_http_exchange *exchange = make_exchange(conn);

	if (!exchange) {
		coop_intake_refuse(conn, 503, "sandbox_overloaded", "out of memory");
		return;
	}
	conn->exchange = exchange;
	conn->serial++;
	conn->phase = COOP_CONN_CHECK;
	conn->keep_alive = conn->head->parser.http_minor == 1 &&
			   !coop_head_lists(conn->head, "connection", "close") &&
			   !exchange->upgrade;
	conn->net->counts.requests++;
	coop_http_conn_deadline(conn, COOP_BODY_MS);
	conn->net->calls->begun(exchange);
}

size_t coop_intake_head(struct coop_http_conn *conn, const char *data, size_t size)
{
	size_t used = size;

	if (!conn->head) {
		conn->head = coop_head_new();
		if (!conn->head) {
			coop_intake_refuse(conn, 503, "sandbox_overloaded", "out of memory");
			return size;
		}
		coop_http_conn_deadline(conn, COOP_HEAD_MS);
	}
	int r = coop_head_feed(conn->head, data, size, &used);
	if (r == -ENOMEM)
		coop_intake_refuse(conn, 503, "sandbox_overloaded", "out of memory");
	else if (r < 0)
		coop_intake_refuse(conn, conn->head->fault.status, conn->head->fault.code,
				   conn->head->fault.message);
	else if (r > 0)
		on_head(conn);
	return used;
}

static void on_body(void *context, const char *data, size_t size)
{
	struct coop_http_conn *conn = context;
	struct coop_http_exchange *exchange = conn->exchange;

	if (!exchange || conn->phase != COOP_CONN_BODY)
		return;
	if (conn->route->body == COOP_BODY_STREAM) {
		if (exchange->behaviour && exchange->behaviour->body)
			exchange->behaviour->body(exchange, data, size);
	} else if (conn->route->body == COOP_BODY_JSON) {
		if (coop_buf_size(&conn->body) + size > json_max(conn->route))
			coop_http_refuse(exchange, 413, "too_large",
					 "the body is larger than %zu bytes",
					 json_max(conn->route));
		else if (coop_buf_append(&conn->body, data, size) < 0)
			coop_http_refuse(exchange, 503, "sandbox_overloaded", "out of memory");
		else if (!coop_share_hold(&conn->part, coop_buf_size(&conn->body)))
			coop_http_refuse(exchange, 429, "quota_exceeded",
					 "this token's agent sends too much at a time");
	}
}

static void on_body_end(struct coop_http_conn *conn)
{
	struct coop_http_exchange *exchange = conn->exchange;

	conn->phase = COOP_CONN_ANSWER;
	coop_http_conn_deadline(conn, 0);
	if (conn->route->body == COOP_BODY_JSON)
		call_with_json(conn);
	else if (conn->route->body == COOP_BODY_NONE)
		call_route(conn);
	else if (exchange->behaviour && exchange->behaviour->body_end)
		exchange->behaviour->body_end(exchange);
}

size_t coop_intake_body(struct coop_http_conn *conn, const char *data, size_t size)
{
	size_t used;
	struct coop_head *head = conn->head;

	head->sink = on_body;
	head->sink_context = conn;
	coop_http_conn_deadline(conn, COOP_BODY_MS);
	int r = coop_head_body(head, data, size, &used);
	if (conn->phase != COOP_CONN_BODY || !conn->exchange)
		return used;
	if (r < 0) {
		coop_http_refuse(conn->exchange, head->fault.status, head->fault.code, "%s",
				 head->fault.message);
		return size;
	}
	if (r > 0)
		on_body_end(conn);
	return used;
}
