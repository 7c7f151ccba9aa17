#include "doors/http/runtime/v1/routes.h"

#include <string.h>

#include "base/buf.h"
#include "base/json/jsonw.h"
#include "doors/http/net/exchange.h"
#include "doors/http/net/target.h"
#include "doors/http/runtime/ask.h"
#include "doors/http/runtime/v1/output.h"
#include "doors/http/runtime/v1/process_ask.h"
#include "doors/http/runtime/v1/refusal.h"
#include "doors/http/runtime/v1/socket.h"
#include "doors/http/runtime/v1/stop.h"
#include "doors/http/runtime/v1/view.h"

/* Records of one answer of the keeper: reading a long one would hold up everybody else. */
#define PAGE 100
#define TRIES_MAX 3
#define LIST_MAX (64u << 20)

struct list {
	struct coop_ask ask;
	bool all;
	unsigned tries;
	struct coop_buf text;
	struct coop_jsonw w;
};

static void clear(struct coop_ask *ask)
{
	coop_buf_clear(&((struct list *)ask)->text);
}

static void ask_page(struct list *list, const char *after);

static void on_page(struct coop_ask *ask, const json_t *result)
{
	struct list *list = (struct list *)ask;
	const json_t *processes = json_object_get(result, "processes");
	struct coop_process_view view = {0};

	for (size_t i = 0; i < json_array_size(processes); i++) {
		if (coop_process_view_read(&view, json_array_get(processes, i)) && !view.hidden &&
		    (list->all || !view.ended))
			coop_process_view_write(&view, &list->w, NULL);
	}
	if (coop_buf_size(&list->text) > LIST_MAX) {
		coop_http_refuse(ask->exchange, 413, "too_large", "there are too many processes");
		return;
	}
	if (json_is_true(json_object_get(result, "more")) && view.id && !list->w.failed) {
		ask_page(list, view.id);
		return;
	}
	coop_jsonw_array_end(&list->w);
	coop_jsonw_end(&list->w);
	struct coop_buf text = list->text;
	list->text = (struct coop_buf){0}; /* the list goes with its answer */
	const struct coop_jsonw w = list->w;
	coop_ask_answer(ask, &text, &w);
}

static void ask_page(struct list *list, const char *after)
{
	/* `agent`: those below it have scopes of their own. */
	coop_ask(&list->ask, "list",
		 json_pack("{s:s,s:b,s:i,s:s*}", "agent", "self", "include_finished", list->all,
			   "limit", PAGE, "after", after),
		 on_page);
}

static void begin(struct list *list)
{
	coop_buf_clear(&list->text);
	list->w = (struct coop_jsonw){.out = &list->text};
	coop_jsonw_begin(&list->w, NULL);
	coop_jsonw_array(&list->w, "processes");
	ask_page(list, NULL);
}

/* The process behind which the next page begins may have been forgotten meanwhile: from the
 * beginning, then. */
static void on_failed(struct coop_ask *ask, const struct coop_error *error)
{
	struct list *list = (struct list *)ask;

	if (!strcmp(error->code, "no_such_process") && list->tries++ < TRIES_MAX)
		begin(list);
	else
		coop_refuse_with(ask->exchange, error);
}

static void list_processes(struct coop_http_exchange *exchange)
{
	bool all = false;

	if (coop_query_bool(exchange->query, "all", &all) < 0) {
		coop_http_refuse(exchange, 400, "invalid_argument", "all must be true or false");
		return;
	}
	struct list *list = coop_ask_new(exchange, sizeof *list);
	if (!list)
		return;
	list->ask.clear = clear;
	list->ask.failed = on_failed;
	list->all = all;
	begin(list);
}

static void on_status(struct coop_ask *ask, const json_t *result)
{
	struct coop_process_view view;

	if (coop_v1_ask_view(ask, result, &view))
		coop_v1_answer_process(ask, &view);
}

static void show_process(struct coop_http_exchange *exchange)
{
	struct coop_ask *ask = coop_ask_new(exchange, sizeof *ask);

	if (ask)
		coop_v1_ask_process(ask, on_status);
}

const struct coop_http_route coop_routes_runtime[] = {
	{"GET", "/runtime/v1/process", COOP_ROUTE_UPGRADE, COOP_BODY_NONE, 0, coop_runtime_start},
	{"GET", "/runtime/v1/process", 0, COOP_BODY_NONE, 0, list_processes},
	{"GET", "/runtime/v1/process/{id}", 0, COOP_BODY_NONE, 0, show_process},
	{"DELETE", "/runtime/v1/process/{id}", 0, COOP_BODY_NONE, 0, coop_runtime_delete},
	{"GET", "/runtime/v1/process/{id}/output", 0, COOP_BODY_NONE, 0, coop_runtime_output},
	{"POST", "/runtime/v1/process/{id}/signal", 0, COOP_BODY_JSON, 0, coop_runtime_signal},
	{"GET", "/runtime/v1/process/{id}/connect", COOP_ROUTE_UPGRADE, COOP_BODY_NONE, 0,
	 coop_runtime_connect},
	{"*", "/runtime/v1/git/", COOP_ROUTE_BELOW, COOP_BODY_NONE, 0, coop_refuse_route},
	{"*", "/runtime/v1/code/", COOP_ROUTE_BELOW, COOP_BODY_NONE, 0, coop_refuse_route},
	{0},
};
