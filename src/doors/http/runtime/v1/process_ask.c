#include "doors/http/runtime/v1/process_ask.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json/jsonw.h"
#include "base/mem.h"
#include "doors/http/net/exchange.h"
#include "doors/http/runtime/v1/refusal.h"

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

void coop_v1_ask_process(struct coop_ask *ask,
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

bool coop_v1_ask_view(struct coop_ask *ask, const json_t *result, struct coop_process_view *view)
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

void coop_v1_answer_process(struct coop_ask *ask, const struct coop_process_view *view)
{
	struct coop_buf text = {0};
	struct coop_jsonw w = {.out = &text};

	coop_jsonw_begin(&w, NULL);
	coop_process_view_write(view, &w, "process");
	coop_jsonw_end(&w);
	coop_ask_answer(ask, &text, &w);
}
