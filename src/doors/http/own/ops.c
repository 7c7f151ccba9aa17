#include "doors/http/own/ops.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/jsonw.h"
#include "base/mem.h"
#include "base/text/base64.h"
#include "doors/http/runtime/v1/refusal.h"
#include "doors/http/users/detail.h"
#include "doors/http/users/user.h"

#define NAME_MAX_BYTES 64u
#define STREAMS 4

static const char *const stream_names[STREAMS] = {"stdin", "stdout", "stderr", "pty"};

/* One operation on its way. It goes with its exchange. */
struct asked {
	struct coop_http_exchange *exchange;
	struct coop_call *call;
	struct coop_buf streams[STREAMS];
	struct coop_buf chunks; /* elements of the list, as text */
	struct coop_jsonw writer;
	size_t size; /* of what came, in bytes */
	bool by_event, failed;
};

/* `"name":"base64"`, straight into the text. */
static void write_base64(struct coop_jsonw *w, const char *name, const void *data, size_t size)
{
	size_t length = coop_base64_length(size);

	coop_jsonw_raw(w, name, "\"");
	uint8_t *room = w->failed ? NULL : coop_buf_reserve(w->out, length + 1);
	if (!room) {
		w->failed = true;
		return;
	}
	coop_base64_encode(data, size, (char *)room);
	room[length] = '"';
	coop_buf_commit(w->out, length + 1);
}

static void no_memory(struct coop_http_exchange *exchange)
{
	coop_http_refuse(exchange, 500, "internal", "no memory is left for this");
}

void coop_ops_refuse(struct coop_http_exchange *exchange, const struct coop_error *error)
{
	struct coop_buf text = {0};
	struct coop_jsonw w = {.out = &text};

	coop_jsonw_begin(&w, NULL);
	coop_jsonw_string(&w, "error", error->code);
	coop_jsonw_string(&w, "message", error->message);
	coop_jsonw_raw(&w, "details", *error->details ? error->details : "{}");
	coop_jsonw_end(&w);
	if (w.failed)
		no_memory(exchange);
	else
		coop_http_answer_json(exchange, coop_refusal_of(error).status,
				      (const char *)coop_buf_front(&text), coop_buf_size(&text));
	coop_buf_clear(&text);
}

static void over(struct coop_http_exchange *exchange)
{
	struct asked *asked = exchange->context;

	coop_user_drop(asked->call);
	for (int i = 0; i < STREAMS; i++)
		coop_buf_clear(&asked->streams[i]);
	coop_buf_clear(&asked->chunks);
	free(asked);
}

static const struct coop_http_behaviour behaviour = {.over = over};

static void on_data(void *user, uint64_t request, const struct coop_chunk *chunk)
{
	struct asked *asked = user;
	struct coop_jsonw *w = &asked->writer;

	asked->size += chunk->size;
	if (asked->failed || asked->size > COOP_OPS_DATA_MAX)
		return;
	asked->failed = coop_buf_append(&asked->streams[chunk->stream & (STREAMS - 1)], chunk->data,
					chunk->size) < 0;
	if (chunk->cursor == COOP_NO_CURSOR)
		return;
	asked->by_event = true;
	coop_jsonw_begin(w, NULL);
	coop_jsonw_string(w, "stream", stream_names[chunk->stream & (STREAMS - 1)]);
	coop_jsonw_uint(w, "offset", chunk->offset);
	coop_jsonw_uint(w, "cursor", chunk->cursor);
	write_base64(w, "data", chunk->data, chunk->size);
	coop_jsonw_end(w);
	asked->failed |= w->failed;
}

/* The result with the members that its bytes make, before its closing brace. */
static int add_data(const struct asked *asked, const char *json, struct coop_buf *text)
{
	const char *end = strrchr(json, '}');

	if (!end || coop_buf_append(text, json, (size_t)(end - json)) < 0)
		return -1;
	struct coop_jsonw w = {.out = text, .comma = end > json + 1};
	coop_jsonw_begin(&w, "data");
	for (int i = 0; i < STREAMS; i++) {
		const struct coop_buf *stream = &asked->streams[i];
		if (coop_buf_size(stream))
			write_base64(&w, stream_names[i], coop_buf_front(stream),
				     coop_buf_size(stream));
	}
	coop_jsonw_end(&w);
	if (asked->by_event) {
		coop_jsonw_array(&w, "chunks");
		if (!w.failed && coop_buf_append(text, coop_buf_front(&asked->chunks),
						 coop_buf_size(&asked->chunks)) < 0)
			w.failed = true;
		coop_jsonw_array_end(&w);
	}
	coop_jsonw_end(&w);
	return w.failed ? -1 : 0;
}

static void answer(struct asked *asked, const char *json)
{
	struct coop_buf text = {0};

	if (asked->failed)
		no_memory(asked->exchange);
	else if (asked->size > COOP_OPS_DATA_MAX)
		coop_http_refuse(asked->exchange, 413, "too_large",
				 "the answer has more than %u bytes of output", COOP_OPS_DATA_MAX);
	else if (asked->size == 0)
		coop_http_answer_json(asked->exchange, 200, json, strlen(json));
	else if (add_data(asked, json, &text) < 0)
		no_memory(asked->exchange);
	else
		coop_http_answer_json(asked->exchange, 200, (const char *)coop_buf_front(&text),
				      coop_buf_size(&text));
	coop_buf_clear(&text);
}

static void refuse_name(struct coop_http_exchange *exchange)
{
	coop_http_refuse(exchange, 404, "not_found",
			 "there is no such operation; POST /v1/ops/describe lists them");
}

static void on_done(void *user, uint64_t request, int status, const char *json,
		    const struct coop_error *error)
{
	struct asked *asked = user;

	asked->call = NULL;
	if (status == 0)
		answer(asked, json);
	/* The operation's name, and not one of its arguments: none of them is called so. */
	else if (!strcmp(error->code, "invalid_input") && coop_detail_is(error, "field", "op"))
		refuse_name(asked->exchange);
	else
		coop_ops_refuse(asked->exchange, error);
}

/* Takes `data_base64` out of the body. False: it has been refused. */
static bool take_bytes(struct coop_http_exchange *exchange, void **ret_bytes, size_t *ret_size)
{
	const json_t *text = json_object_get(exchange->json, "data_base64");
	size_t length = json_string_length(text);

	*ret_bytes = NULL;
	*ret_size = 0;
	if (!text)
		return true;
	if (!json_is_string(text)) {
		coop_http_refuse(exchange, 400, "invalid_input", "data_base64 must be a string");
		return false;
	}
	void *bytes = coop_mem_alloc(coop_base64_room(length) + 1);
	if (!bytes) {
		no_memory(exchange);
		return false;
	}
	if (coop_base64_decode(json_string_value(text), length, bytes, ret_size) < 0) {
		free(bytes);
		coop_http_refuse(exchange, 400, "invalid_input",
				 "data_base64 is not base64 (standard alphabet, with padding)");
		return false;
	}
	(void)json_object_del(exchange->json, "data_base64");
	*ret_bytes = bytes;
	return true;
}

static bool is_name(const char *text)
{
	size_t size = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");

	return size > 0 && size <= NAME_MAX_BYTES && !text[size];
}

/* Names that the keeper knows and this route does not serve. True: it has been refused. */
static bool refuse_by_name(struct coop_http_exchange *exchange, const char *name)
{
	bool follows = !strcmp(name, "follow") ||
		       (!strcmp(name, "spawn") && json_object_get(exchange->json, "follow"));

	if (!is_name(name) || !strcmp(name, "login") || !strcmp(name, "ceiling"))
		refuse_name(exchange);
	else if (follows)
		coop_http_refuse(exchange, 400, "invalid_input",
				 "output as it comes is read over the WebSocket of GET "
				 "/runtime/v1/process/{id}/connect, or by asking for read again");
	else if (!strcmp(name, "follow_events"))
		coop_http_refuse(exchange, 400, "invalid_input",
				 "events are read from GET /v1/events");
	else
		return false;
	return true;
}

static void ask(struct coop_http_exchange *exchange)
{
	const char *name = exchange->params[0];
	void *bytes;
	size_t size;

	if (refuse_by_name(exchange, name) || !take_bytes(exchange, &bytes, &size))
		return;
	struct asked *asked = coop_mem_zalloc(sizeof *asked);
	if (!asked) {
		free(bytes);
		no_memory(exchange);
		return;
	}
	asked->exchange = exchange;
	asked->writer.out = &asked->chunks;
	coop_http_expect(exchange, &behaviour, asked);
	const struct coop_handler handler = {.data = on_data, .done = on_done, .user = asked};
	asked->call = coop_user_call(exchange->user, name, json_incref(exchange->json), bytes, size,
				     &handler);
	free(bytes);
	if (!asked->call)
		no_memory(exchange);
}

const struct coop_http_route coop_routes_ops[] = {
	{"POST", "/v1/ops/{name}", 0, COOP_BODY_JSON, COOP_OPS_BODY_MAX, ask},
	{0},
};
