#include "doors/http/runtime/ask.h"

#include <stdlib.h>

#include "base/mem.h"

static void on_over(struct coop_http_exchange *exchange)
{
	struct coop_ask *ask = exchange->context;

	coop_user_drop(ask->call);
	if (ask->clear)
		ask->clear(ask);
	free(ask->id);
	free(ask);
}

void *coop_ask_new(struct coop_http_exchange *exchange, size_t size)
{
	static const struct coop_http_behaviour behaviour = {.over = on_over};
	struct coop_ask *ask = coop_mem_zalloc(size);

	if (!ask) {
		coop_http_refuse(exchange, 500, "internal", "out of memory");
		return NULL;
	}
	ask->exchange = exchange;
	coop_http_expect(exchange, &behaviour, ask);
	return ask;
}

void coop_ask_no_memory(struct coop_ask *ask)
{
	coop_http_refuse(ask->exchange, 500, "internal", "out of memory");
}

static void on_data(void *user, uint64_t request, const struct coop_chunk *chunk)
{
	struct coop_ask *ask = user;

	if (ask->data)
		ask->data(ask, chunk);
}

static void on_done(void *user, uint64_t request, int status, const char *json,
		    const struct coop_error *error)
{
	struct coop_ask *ask = user;

	ask->call = NULL;
	if (status < 0) {
		ask->failed(ask, error);
		return;
	}
	json_t *result = json_loads(json, 0, NULL);
	if (result)
		ask->next(ask, result);
	else
		coop_ask_no_memory(ask);
	json_decref(result);
}

void coop_ask(struct coop_ask *ask, const char *op, json_t *args,
	      void (*next)(struct coop_ask *ask, const json_t *result))
{
	struct coop_handler handler = {.data = on_data, .done = on_done, .user = ask};

	ask->next = next;
	if (args)
		ask->call = coop_user_call(ask->exchange->user, op, args, NULL, 0, &handler);
	if (!ask->call)
		coop_ask_no_memory(ask);
}

void coop_ask_answer(struct coop_ask *ask, struct coop_buf *text, const struct coop_jsonw *w)
{
	if (w->failed)
		coop_ask_no_memory(ask);
	else
		coop_http_answer_json(ask->exchange, 200, (const char *)coop_buf_front(text),
				      coop_buf_size(text));
	coop_buf_clear(text);
}
