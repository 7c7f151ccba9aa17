#include "doors/http/own/events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "doors/http/net/exchange.h"
#include "doors/http/net/net.h"
#include "doors/http/net/target.h"
#include "doors/http/own/ops.h"
#include "doors/http/users/user.h"

/* One stream of events. It goes with its exchange, but for the timer, which libuv lets go a little
 * later. */
struct events {
	struct coop_http_exchange *exchange; /* NULL once it is over, which a write may find out */
	struct coop_call *call;
	uv_timer_t alive;
	bool begun;
	uint64_t lost; /* not told yet */
};

static void no_memory(struct coop_http_exchange *exchange)
{
	coop_http_refuse(exchange, 500, "internal", "no memory is left for this");
}

static void over(struct coop_http_exchange *exchange)
{
	struct events *events = exchange->context;

	coop_user_drop(events->call);
	if (events->begun)
		exchange->net->counts.subscribers--;
	events->exchange = NULL;
	uv_close((uv_handle_t *)&events->alive, coop_http_free_owner);
}

static void send_event(struct events *events, const char *name, const char *json)
{
	struct coop_buf text = {0};
	int r = coop_buf_append(&text, "event: ", 7);

	r = r < 0 ? r : coop_buf_append(&text, name, strlen(name));
	r = r < 0 ? r : coop_buf_append(&text, "\ndata: ", 7);
	r = r < 0 ? r : coop_buf_append(&text, json, strlen(json));
	r = r < 0 ? r : coop_buf_append(&text, "\n\n", 2);
	if (r < 0)
		events->lost++;
	else if (events->exchange)
		coop_http_write(events->exchange, coop_buf_front(&text), coop_buf_size(&text));
	coop_buf_clear(&text);
}

static void tell_gap(struct events *events)
{
	char json[64];
	uint64_t lost = events->lost;

	if (lost == 0 || !events->exchange)
		return;
	events->lost = 0;
	events->exchange->net->counts.gaps++;
	(void)snprintf(json, sizeof json, "{\"event\":\"gap\",\"lost\":%" PRIu64 "}", lost);
	send_event(events, "gap", json);
}

static void on_writable(struct coop_http_exchange *exchange)
{
	tell_gap(exchange->context);
}

static const struct coop_http_behaviour behaviour = {.writable = on_writable, .over = over};

static void on_alive(uv_timer_t *timer)
{
	struct events *events = timer->data;

	/* A client that has something to read knows that the stream lives. */
	if (coop_http_pending(events->exchange) == 0)
		coop_http_write(events->exchange, ": alive\n\n", 9);
}

/* The answer begins with the keeper's word that it takes part: until then there may be a
 * refusal. */
static void begin(struct events *events)
{
	struct coop_http_exchange *exchange = events->exchange;

	events->begun = true;
	exchange->net->counts.subscribers++;
	coop_http_add_header(exchange, "X-Accel-Buffering: no");
	coop_http_begin(exchange, 200, "text/event-stream", -1);
	if (!events->exchange)
		return;
	if (!strcmp(exchange->method, "HEAD")) {
		coop_http_end(exchange);
		return;
	}
	(void)uv_timer_start(&events->alive, on_alive, COOP_EVENTS_ALIVE_MS, COOP_EVENTS_ALIVE_MS);
}

static void drop_event(struct events *events, const char *name, const json_t *event)
{
	/* A gap that the keeper tells stands for as many as it says. */
	json_int_t count =
		strcmp(name, "gap") ? 1 : json_integer_value(json_object_get(event, "lost"));

	events->lost += count > 0 ? (uint64_t)count : 1;
}

/* Sends an event, or counts it where too much waits already. */
static void pass_on(struct events *events, const char *name, json_t *event)
{
	size_t pending = coop_http_pending(events->exchange);

	if (events->lost && pending < COOP_HTTP_LOW)
		tell_gap(events);
	if (events->lost || pending > COOP_EVENTS_PENDING_MAX) {
		drop_event(events, name, event);
		return;
	}
	(void)json_object_del(event, "id");
	char *json = json_dumps(event, JSON_COMPACT);
	if (json)
		send_event(events, name, json);
	else
		events->lost++;
	free(json);
}

static void on_event(void *user, uint64_t request, const char *text)
{
	struct events *events = user;
	json_t *event = json_loads(text, 0, NULL);
	const char *name = json_string_value(json_object_get(event, "event"));

	if (!events->begun)
		begin(events);
	if (events->exchange && name)
		pass_on(events, name, event);
	else
		events->lost++;
	json_decref(event);
}

/* The keeper ends a stream when it leaves, or when the token is not valid any more. */
static void on_done(void *user, uint64_t request, int status, const char *json,
		    const struct coop_error *error)
{
	struct events *events = user;
	struct coop_http_exchange *exchange = events->exchange;

	events->call = NULL;
	if (events->begun) {
		tell_gap(events);
		if (events->exchange)
			coop_http_end(exchange);
	} else if (status < 0) {
		coop_ops_refuse(exchange, error);
	} else {
		coop_http_refuse(exchange, 503, "unavailable", "the keeper is leaving");
	}
}

/* Puts a query parameter among the arguments. 0, or a negative errno. */
static int add_argument(const struct coop_http_exchange *exchange, const char *name, json_t *args)
{
	int r;
	char *value = coop_query_get(exchange->query, name, &r);

	if (value && json_object_set_new(args, name, json_string(value)) < 0)
		r = -ENOMEM;
	free(value);
	return r;
}

/* NULL: it has been refused. */
static json_t *make_arguments(struct coop_http_exchange *exchange)
{
	json_t *args = json_object();
	bool replay = true;
	int r = args ? coop_query_bool(exchange->query, "replay", &replay) : -ENOMEM;

	if (r >= 0)
		r = json_object_set_new(args, "replay", json_boolean(replay)) < 0 ? -ENOMEM : 0;
	if (r >= 0)
		r = add_argument(exchange, "agent", args);
	if (r >= 0)
		r = add_argument(exchange, "session", args);
	if (r >= 0)
		return args;
	json_decref(args);
	if (r == -ENOMEM)
		no_memory(exchange);
	else
		coop_http_refuse(exchange, 400, "invalid_input",
				 "agent and session are text, replay is true or false");
	return NULL;
}

static void follow(struct coop_http_exchange *exchange)
{
	json_t *args = make_arguments(exchange);
	struct events *events = args ? coop_mem_zalloc(sizeof *events) : NULL;

	if (!args)
		return;
	if (!events) {
		json_decref(args);
		no_memory(exchange);
		return;
	}
	events->exchange = exchange;
	events->alive.data = events;
	(void)uv_timer_init(exchange->net->loop, &events->alive);
	coop_http_expect(exchange, &behaviour, events);
	const struct coop_handler handler = {.event = on_event, .done = on_done, .user = events};
	events->call = coop_user_call(exchange->user, "follow_events", args, NULL, 0, &handler);
	if (!events->call)
		no_memory(exchange);
}

const struct coop_http_route coop_routes_events[] = {
	{"GET", "/v1/events", 0, COOP_BODY_NONE, 0, follow},
	{0},
};
