#include "doors/http/own/tools_route.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/jsonw.h"
#include "base/mem.h"
#include "doors/http/mcp/mcp_user.h"
#include "doors/http/net/exchange.h"
#include "doors/http/runtime/v1/refusal.h"
#include "doors/tools/core/describe.h"
#include "doors/tools/core/run.h"
#include "doors/tools/core/table.h"

/* One call on its way. It goes with its exchange. */
struct work {
	struct coop_http_exchange *exchange;
	struct coop_mcp_user *owner;
	struct coop_tool_run *run; /* NULL: it is over */
};

static void no_memory(struct coop_http_exchange *exchange)
{
	coop_http_refuse(exchange, 500, "internal", "no memory is left for this");
}

static void over(struct coop_http_exchange *exchange)
{
	struct work *work = exchange->context;

	if (work->run)
		coop_tool_cancel(work->run);
	work->owner->tools--;
	free(work);
}

static const struct coop_http_behaviour behaviour = {.over = over};

/* The status of an error, as the same error has on other routes. */
static unsigned status_of(const json_t *result)
{
	const char *code = json_string_value(json_object_get(result, "code"));
	char *details = json_dumps(json_object_get(result, "details"), JSON_COMPACT);
	struct coop_error error = {0};

	(void)snprintf(error.code, sizeof error.code, "%s", code ? code : "internal");
	(void)snprintf(error.details, sizeof error.details, "%s", details ? details : "{}");
	free(details);
	return coop_refusal_of(&error).status;
}

static void on_done(void *context, enum coop_tool_outcome outcome, json_t *result)
{
	static const char *const lines[] = {
		[COOP_TOOL_OK] = "Coop-Outcome: ok",
		[COOP_TOOL_FAILURE] = "Coop-Outcome: failure",
		[COOP_TOOL_ERROR] = "Coop-Outcome: error",
	};
	struct work *work = context;
	char *text = json_dumps(result, JSON_COMPACT);

	work->run = NULL;
	if (text) {
		coop_http_add_header(work->exchange, lines[outcome]);
		coop_http_answer_json(work->exchange,
				      outcome == COOP_TOOL_ERROR ? status_of(result) : 200, text,
				      strlen(text));
	} else {
		no_memory(work->exchange);
	}
	free(text);
}

static void call(struct coop_http_exchange *exchange)
{
	const struct coop_tool *tool = coop_tool_find(exchange->params[0]);
	struct coop_mcp_user *owner = tool ? coop_mcp_user_get(exchange) : NULL;

	if (!tool)
		coop_http_refuse(exchange, 404, "not_found",
				 "there is no such tool; GET /v1/tools lists them");
	if (!owner)
		return;
	if (owner->tools >= COOP_TOOLS_OPEN_MAX) {
		coop_http_refuse(exchange, 429, "quota_exceeded",
				 "this token has as many calls open as it may");
		return;
	}
	struct work *work = coop_mem_zalloc(sizeof *work);
	if (!work) {
		no_memory(exchange);
		return;
	}
	work->exchange = exchange;
	work->owner = owner;
	owner->tools++;
	coop_http_expect(exchange, &behaviour, work);
	const struct coop_tool_client client = {.done = on_done, .context = work};
	work->run = coop_tool_run(&owner->host, &owner->setup, tool, exchange->json, &client);
	if (!work->run)
		no_memory(exchange);
}

static void list(struct coop_http_exchange *exchange)
{
	struct coop_buf text = {0};
	struct coop_jsonw w = {.out = &text};

	coop_jsonw_begin(&w, NULL);
	coop_jsonw_array(&w, "tools");
	for (size_t i = 0; coop_tool_at(i); i++)
		coop_tool_describe(&w, coop_tool_at(i), COOP_TOOLS_ALL);
	coop_jsonw_array_end(&w);
	coop_jsonw_end(&w);
	if (w.failed)
		no_memory(exchange);
	else
		coop_http_answer_json(exchange, 200, (char *)coop_buf_front(&text),
				      coop_buf_size(&text));
	coop_buf_clear(&text);
}

const struct coop_http_route coop_routes_tools[] = {
	{"GET", "/v1/tools", 0, COOP_BODY_NONE, 0, list},
	{"POST", "/v1/tools/{name}", 0, COOP_BODY_JSON, COOP_TOOLS_BODY_MAX, call},
	{0},
};
