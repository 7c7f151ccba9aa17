#include "doors/http/runtime/runtime_ask.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "doors/http/net/refusal.h"

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

	(void)request;
	if (ask->data)
		ask->data(ask, chunk);
}

static void on_done(void *user, uint64_t request, int status, const char *json,
		    const struct coop_error *error)
{
	struct coop_ask *ask = user;

	(void)request;
	ask->call = NULL;
	if (status < 0 && ask->failed) {
		ask->failed(ask, error);
		return;
	}
	if (status < 0) {
		coop_refuse_with(ask->exchange, error);
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

static void refuse_unknown(struct coop_ask *ask)
{
	const struct coop_error error = {.code = "no_such_process",
					 .message = "there is no such process"};

	coop_refuse_with(ask->exchange, &error);
}

/* All that is not there is answered in the same words, whatever the reason. */
static void on_failed(struct coop_ask *ask, const struct coop_error *error)
{
	struct coop_http_refusal refusal = coop_refusal_of(error);

	if (refusal.status == 404)
		refuse_unknown(ask);
	else
		coop_refuse_with(ask->exchange, error);
}

void coop_ask_process(struct coop_ask *ask,
		      void (*next)(struct coop_ask *ask, const json_t *result))
{
	const char *name = ask->exchange->params[0];
	bool none = false;
	COOP_AUTO_FREE char *address = name ? coop_process_address(name, &none) : NULL;

	if (none) {
		refuse_unknown(ask);
		return;
	}
	ask->failed = on_failed;
	coop_ask(ask, "status", address ? json_pack("{s:s}", "id", address) : NULL, next);
}

bool coop_ask_view(struct coop_ask *ask, const json_t *result, struct coop_process_view *view)
{
	if (!coop_process_view_read(view, json_object_get(result, "process")) || view->hidden) {
		refuse_unknown(ask);
		return false;
	}
	if (ask->id)
		return true;
	ask->id = coop_mem_strdup(view->id);
	if (ask->id)
		return true;
	coop_ask_no_memory(ask); /* and `ask` is gone */
	return false;
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

void coop_ask_answer_process(struct coop_ask *ask, const struct coop_process_view *view)
{
	struct coop_buf text = {0};
	struct coop_jsonw w = {.out = &text};

	coop_jsonw_begin(&w, NULL);
	coop_process_view_write(view, &w, "process");
	coop_jsonw_end(&w);
	coop_ask_answer(ask, &text, &w);
}
