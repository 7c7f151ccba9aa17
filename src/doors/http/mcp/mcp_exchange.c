#include "doors/http/mcp/mcp_exchange.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/later.h"
#include "base/list.h"
#include "base/mem.h"
#include "doors/http/net/exchange.h"
#include "doors/http/net/net.h"
#include "doors/http/users/user.h"
#include "doors/mcp/mcp.h"
#include "doors/mcp/subscription.h"

/* Without a word to anybody. */
static void discard(struct coop_mcp_exchange *work)
{
	coop_list_remove(&work->link);
	coop_later_cancel(&work->gone);
	coop_buf_clear(&work->body);
	coop_buf_clear(&work->said);
	uv_close((uv_handle_t *)&work->timer, coop_http_free_owner);
}

static void free_work(struct coop_mcp_exchange *work)
{
	struct coop_user *user = work->owner->user;
	struct coop_mcp_client *client = work->client;

	discard(work);
	if (client)
		coop_mcp_client_leave(client);
	coop_user_unref(user);
}

static struct coop_mcp_request *find_request(const struct coop_mcp_exchange *work)
{
	struct coop_mcp_request *request = work->owner->mcp.requests;

	while (request && request->channel != &work->channel)
		request = request->next;
	return request;
}

static void on_gone(struct coop_later *item)
{
	struct coop_mcp_exchange *work = COOP_LATER_OWNER(item, struct coop_mcp_exchange, gone);
	struct coop_mcp_request *request;

	work->busy++;
	while ((request = find_request(work)))
		coop_mcp_cancel(request);
	work->busy--;
	free_work(work);
}

/* Frees it if nothing is to come of it any more. */
static void let_go(struct coop_mcp_exchange *work)
{
	if (work->busy || work->exchange)
		return;
	if (!work->begun || work->done)
		free_work(work);
	else if (work->modern)
		/* Later: the server may be about to send, and must find its request afterwards. */
		coop_later(&work->owner->net->laters, &work->gone);
}

static void over(struct coop_http_exchange *exchange)
{
	struct coop_mcp_exchange *work = exchange->context;

	work->exchange = NULL;
	(void)uv_timer_stop(&work->timer);
	if (work->client && work->client->stream == work) {
		work->client->stream = NULL;
		work->client->session.channel = NULL;
	}
	let_go(work);
}

static void on_alive(uv_timer_t *timer)
{
	struct coop_mcp_exchange *work = timer->data;

	/* A client that has something to read knows that the stream lives. */
	if (coop_http_pending(work->exchange) == 0)
		coop_http_write(work->exchange, ": alive\n\n", 9);
}

static void add_headers(struct coop_mcp_exchange *work)
{
	char line[32 + COOP_MCP_CLIENT_ID];

	if (work->streaming)
		coop_http_add_header(work->exchange, "X-Accel-Buffering: no");
	if (!work->opens || !work->client || work->client->session.version == COOP_MCP_NONE)
		return;
	(void)snprintf(line, sizeof line, "Mcp-Session-Id: %s", work->client->id);
	coop_http_add_header(work->exchange, line);
}

static void write_event(struct coop_mcp_exchange *work, const void *json, size_t size)
{
	static const char head[] = "event: message\ndata: ";
	struct coop_buf text = {0};
	int r = coop_buf_append(&text, head, sizeof head - 1);

	r = r < 0 ? r : coop_buf_append(&text, json, size);
	r = r < 0 ? r : coop_buf_append(&text, "\n\n", 2);
	if (r < 0)
		coop_http_abort(work->exchange); /* what is missing is noticed */
	else
		coop_http_write(work->exchange, coop_buf_front(&text), coop_buf_size(&text));
	coop_buf_clear(&text);
}

/* The next of the messages that wait; NULL behind the last. */
static const char *next_said(const struct coop_mcp_exchange *work, size_t *at, size_t *ret_size)
{
	const char *all = (const char *)coop_buf_front(&work->said);
	size_t left = coop_buf_size(&work->said) - *at;
	const char *end = left ? memchr(all + *at, '\n', left) : NULL;

	if (!end)
		return NULL;
	const char *line = all + *at;
	*ret_size = (size_t)(end - line);
	*at += *ret_size + 1;
	return line;
}

static void begin_stream(struct coop_mcp_exchange *work)
{
	const char *line;
	size_t at = 0, size;

	work->streaming = true;
	add_headers(work);
	coop_http_begin(work->exchange, 200, "text/event-stream", -1);
	while (work->exchange && (line = next_said(work, &at, &size)))
		write_event(work, line, size);
	coop_buf_clear(&work->said);
	if (work->exchange)
		(void)uv_timer_start(&work->timer, on_alive, COOP_MCP_ALIVE_MS, COOP_MCP_ALIVE_MS);
}

static void no_memory(struct coop_mcp_exchange *work)
{
	coop_http_refuse(work->exchange, 503, "sandbox_overloaded", "out of memory");
}

static void answer_json(struct coop_mcp_exchange *work)
{
	bool opened =
		!work->opens || !work->client || work->client->session.version != COOP_MCP_NONE;
	unsigned usual = opened ? 200 : 400;

	add_headers(work);
	coop_http_answer_json(work->exchange, work->status ? work->status : usual,
			      (const char *)coop_buf_front(&work->said),
			      coop_buf_size(&work->said) - 1);
}

/* Everything has been said. */
static void finish(struct coop_mcp_exchange *work)
{
	if (!work->exchange)
		return;
	if (work->streaming)
		coop_http_end(work->exchange);
	else if (work->starved)
		no_memory(work);
	else if (coop_buf_size(&work->said))
		answer_json(work);
	else
		coop_http_answer(work->exchange, 202, "application/json", "", 0);
}

/* Keeps a message until it is known how to answer. */
static void keep(struct coop_mcp_exchange *work, const char *json, size_t size)
{
	if (coop_buf_append(&work->said, json, size) < 0 ||
	    coop_buf_append(&work->said, "\n", 1) < 0)
		work->starved = true;
}

static void on_send(struct coop_mcp_channel *channel, const char *json, size_t size, bool last)
{
	struct coop_mcp_exchange *work = (struct coop_mcp_exchange *)channel;

	work->busy++;
	work->done |= last;
	work->loose |= !last;
	if (work->exchange && !work->taking && !last && !work->streaming)
		begin_stream(work);
	if (work->exchange && work->streaming)
		write_event(work, json, size);
	else if (work->exchange)
		keep(work, json, size);
	if (!work->taking && work->done)
		finish(work);
	work->busy--;
	let_go(work);
}

/* There will be no answer: whoever waits for it waits for nothing. */
static void on_cancelled(struct coop_mcp_channel *channel)
{
	struct coop_mcp_exchange *work = (struct coop_mcp_exchange *)channel;

	work->busy++;
	work->done = true;
	if (!work->taking)
		finish(work);
	work->busy--;
	let_go(work);
}

static void on_status(struct coop_mcp_channel *channel, unsigned status)
{
	((struct coop_mcp_exchange *)channel)->status = status;
}

static bool has_room(const struct coop_mcp_channel *channel)
{
	const struct coop_mcp_exchange *work = (const struct coop_mcp_exchange *)channel;

	/* What is said to one that has gone takes no room. */
	return !work->exchange || coop_http_pending(work->exchange) < COOP_MCP_PENDING_MAX;
}

/* The server has looked at the message: what it said so far decides how to answer. */
static void settle(struct coop_mcp_exchange *work)
{
	if (!work->exchange)
		return;
	if (work->loose || (work->begun && !work->done && work->wants_stream))
		begin_stream(work);
	if (!work->begun || work->done)
		finish(work);
}

void coop_mcp_exchange_take(struct coop_mcp_exchange *work, struct coop_mcp_client *client,
			    json_t *message)
{
	struct coop_mcp_user *owner = work->owner;

	if (client) {
		work->client = client;
		coop_mcp_client_enter(client);
	}
	work->modern = !client;
	work->busy++;
	work->taking = true;
	work->begun = coop_mcp_take(&owner->mcp, client ? &client->session : NULL, &work->channel,
				    message) > 0;
	work->taking = false;
	coop_mcp_user_used(owner);
	settle(work);
	work->busy--;
	let_go(work);
}

void coop_mcp_exchange_refuse(struct coop_mcp_exchange *work, unsigned status,
			      enum coop_mcp_code code, const json_t *id, const char *message)
{
	json_t *known =
		json_is_string(id) || json_is_integer(id) ? json_incref((json_t *)id) : json_null();
	json_t *error = json_pack("{s:s,s:o,s:{s:i,s:s}}", "jsonrpc", "2.0", "id", known, "error",
				  "code", (int)code, "message", message);
	char *text = error ? json_dumps(error, JSON_COMPACT) : NULL;

	if (text)
		coop_http_answer_json(work->exchange, status, text, strlen(text));
	else
		no_memory(work);
	free(text);
	json_decref(error);
}

void coop_mcp_exchange_follow(struct coop_mcp_exchange *work, struct coop_mcp_client *client)
{
	bool head = !strcmp(work->exchange->method, "HEAD");

	work->client = client;
	coop_mcp_client_enter(client);
	work->busy++;
	begin_stream(work);
	if (work->exchange && head) {
		coop_http_end(work->exchange);
	} else if (work->exchange) {
		client->stream = work;
		client->session.channel = &work->channel;
		coop_mcp_subscription_room(client->session.subscriptions);
	}
	work->busy--;
	let_go(work);
}

/* Room again: what was joined meanwhile may come. */
static void on_writable(struct coop_http_exchange *exchange)
{
	const struct coop_mcp_exchange *work = exchange->context;
	struct coop_mcp_user *owner = work->owner;

	if (work->client && work->client->stream == work)
		coop_mcp_subscription_room(work->client->session.subscriptions);
	coop_mcp_resume(&owner->mcp);
}

static void on_body(struct coop_http_exchange *exchange, const void *data, size_t size)
{
	struct coop_mcp_exchange *work = exchange->context;

	if (!work->whole)
		return;
	if (coop_buf_size(&work->body) + size > COOP_MCP_BODY_MAX)
		coop_http_refuse(exchange, 413, "too_large", "the body is larger than %u bytes",
				 COOP_MCP_BODY_MAX);
	else if (coop_buf_append(&work->body, data, size) < 0)
		no_memory(work);
	else if (!coop_http_hold(exchange, coop_buf_size(&work->body)))
		coop_http_refuse(exchange, 429, "quota_exceeded",
				 "this token's agent sends too much at a time");
}

static void on_body_end(struct coop_http_exchange *exchange)
{
	struct coop_mcp_exchange *work = exchange->context;

	if (work->whole)
		work->whole(work);
}

static const struct coop_http_behaviour behaviour = {
	.body = on_body,
	.body_end = on_body_end,
	.writable = on_writable,
	.over = over,
};

struct coop_mcp_exchange *coop_mcp_exchange_new(struct coop_http_exchange *exchange,
						void (*whole)(struct coop_mcp_exchange *work))
{
	struct coop_mcp_user *owner = coop_mcp_user_get(exchange);
	struct coop_mcp_exchange *work = owner ? coop_mem_zalloc(sizeof *work) : NULL;

	if (!owner)
		return NULL;
	if (!work) {
		coop_http_refuse(exchange, 503, "sandbox_overloaded", "out of memory");
		return NULL;
	}
	work->channel = (struct coop_mcp_channel){
		.send = on_send,
		.status = on_status,
		.cancelled = on_cancelled,
		.has_room = has_room,
	};
	work->owner = owner;
	work->exchange = exchange;
	work->whole = whole;
	coop_list_push(&owner->exchanges, &work->link);
	(void)uv_timer_init(owner->net->loop, &work->timer);
	work->gone.run = on_gone;
	work->timer.data = work;
	(void)coop_user_ref(owner->user);
	coop_http_expect(exchange, &behaviour, work);
	return work;
}

void coop_mcp_exchange_end(struct coop_mcp_exchange *work)
{
	if (work->exchange)
		coop_http_end(work->exchange);
}

void coop_mcp_exchanges_disown(struct coop_mcp_user *owner, const struct coop_mcp_client *client)
{
	COOP_LIST_EACH(&owner->exchanges, link)
	{
		struct coop_mcp_exchange *work =
			COOP_LIST_ITEM(link, struct coop_mcp_exchange, link);
		if (work->client == client)
			work->client = NULL;
	}
}

void coop_mcp_exchanges_clear(struct coop_mcp_user *owner)
{
	while (!coop_list_empty(&owner->exchanges))
		discard(COOP_LIST_ITEM(owner->exchanges.next, struct coop_mcp_exchange, link));
}
