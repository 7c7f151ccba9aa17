/* A WebSocket that is told what happens in a directory. It is there once the directory is watched,
 * and nothing that happens from then on is missed without a word. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "doors/http/files/link.h"
#include "doors/http/files/v1/refusal.h"
#include "doors/http/files/v1/work.h"
#include "doors/http/net/exchange.h"
#include "doors/http/net/ws.h"

/* A client that leaves this much unread is not told more, but that it missed something. */
#define PENDING_HIGH (1u << 20)

struct watch {
	struct coop_files_work work; /* first; its exchange is NULL after the upgrade */
	struct coop_ws *ws;
	bool upgrading;
	bool lost; /* events were dropped, which it has not been told */
};

static void drop(struct watch *watch)
{
	coop_files_close(watch->work.talk);
	free(watch);
}

static void on_exchange_over(struct coop_http_exchange *exchange)
{
	struct watch *watch = exchange->context;

	watch->work.exchange = NULL;
	if (!watch->upgrading)
		drop(watch);
}

static void on_message(struct coop_ws *ws, bool text, const char *data, size_t size)
{
	/* Clients have nothing to say here. */
}

static void on_writable(struct coop_ws *ws)
{
	static const char text[] = "{\"type\":\"overflow\"}";
	struct watch *watch = coop_ws_context(ws);

	if (!watch->lost)
		return;
	watch->lost = false;
	coop_ws_send_text(ws, text, sizeof text - 1);
}

static void on_ws_over(struct coop_ws *ws)
{
	struct watch *watch = coop_ws_context(ws);

	watch->ws = NULL;
	if (!watch->upgrading)
		drop(watch);
}

static void upgrade(struct watch *watch)
{
	static const struct coop_ws_behaviour behaviour = {
		.message = on_message, .writable = on_writable, .over = on_ws_over};
	static const char ready[] = "{\"type\":\"ready\"}";

	watch->upgrading = true;
	watch->ws = coop_http_upgrade(watch->work.exchange, &behaviour, watch);
	watch->upgrading = false;
	if (!watch->ws)
		drop(watch);
	else
		coop_ws_send_text(watch->ws, ready, sizeof ready - 1);
}

/* {"events":[…]} or {"overflow":true}, with a type. */
static void pass_on(struct watch *watch, const struct coop_files_answer *answer)
{
	static const char begin[] = "{\"type\":\"events\",";
	const json_t *events = json_object_get(answer->json, "events");

	if (watch->lost || coop_ws_pending(watch->ws) > PENDING_HIGH ||
	    json_is_true(json_object_get(answer->json, "overflow"))) {
		watch->lost = true;
		if (coop_ws_pending(watch->ws) <= COOP_WS_LOW)
			on_writable(watch->ws);
		return;
	}
	if (!json_is_array(events) || answer->text[0] != '{')
		return;
	COOP_AUTO_FREE char *text = coop_mem_alloc(sizeof begin + answer->text_size);
	if (!text) {
		watch->lost = true;
		return;
	}
	memcpy(text, begin, sizeof begin - 1);
	memcpy(text + sizeof begin - 1, answer->text + 1, answer->text_size - 1);
	coop_ws_send_text(watch->ws, text, sizeof begin - 1 + answer->text_size - 1);
}

static void on_answer(void *context, const struct coop_files_answer *answer)
{
	struct watch *watch = context;

	if (watch->work.exchange)
		upgrade(watch);
	else if (json_is_true(json_object_get(answer->json, "over")))
		coop_ws_close(watch->ws, COOP_WS_NORMAL, "the directory is gone");
	else
		pass_on(watch, answer);
}

static void on_failed(void *context, const struct coop_error *error)
{
	struct watch *watch = context;

	if (watch->work.exchange)
		coop_files_refuse(watch->work.exchange, error);
	else
		coop_ws_close(watch->ws, COOP_WS_INTERNAL, "the file helper has ended");
}

void coop_files_watch(struct coop_http_exchange *exchange)
{
	static const struct coop_http_behaviour behaviour = {.over = on_exchange_over};
	bool recursive = false, include_entry = false;

	if (!coop_files_flag(exchange, "recursive", &recursive) ||
	    !coop_files_flag(exchange, "include_entry", &include_entry))
		return;
	COOP_AUTO_FREE char *path = coop_files_path(exchange);
	if (!path)
		return;
	struct watch *watch = coop_files_work_new(exchange, sizeof *watch, &behaviour);
	if (watch)
		coop_files_work_begin(&watch->work,
				      json_pack("{s:s,s:s,s:b,s:b}", "op", "watch", "path", path,
						"recursive", recursive, "include_entry",
						include_entry),
				      on_answer, on_failed);
}
