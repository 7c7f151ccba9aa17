/* tools/list and tools/call. */
#include "doors/mcp/tools.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/jsonw.h"
#include "base/list.h"
#include "doors/mcp/fixtures.h"
#include "doors/mcp/methods.h"
#include "doors/tools/core/describe.h"
#include "doors/tools/core/table.h"

/* Tools that only look may have large results: so many of them at a time, and only while the client
 * reads. Those that wait do not count, as nobody shall wait for them. */
#define QUICK_MAX 16
#define ENVELOPE_BYTES 512u /* of an answer around its result */

/* All of one configuration stands on one page, so that there is no cursor to come back with. */
static void list(struct coop_mcp_request *request)
{
	struct coop_buf text = {0};
	struct coop_jsonw w = {.out = &text};
	const unsigned sets = request->mcp->sets;

	if (json_object_get(request->params, "cursor")) {
		coop_mcp_error(request, COOP_MCP_INVALID_PARAMS, NULL,
			       "there is no such page: all tools are on the first");
		return;
	}
	coop_mcp_result_begin(request, &w);
	coop_jsonw_array(&w, "tools");
	for (size_t i = 0; coop_tool_at(i); i++)
		if (coop_tool_at(i)->sets & sets)
			coop_tool_describe(&w, coop_tool_at(i), sets);
	coop_mcp_fixture_list(request->mcp, &w);
	coop_jsonw_array_end(&w);
	if (coop_mcp_is_modern(request)) {
		coop_jsonw_int(&w, "ttlMs", 3600000);
		coop_jsonw_string(&w, "cacheScope", "public");
	}
	coop_mcp_result_end(request, &w);
}

/* The tool that a tools/call means: listed by this server, with arguments that are an object. NULL:
 * the request has been answered with an error. */
static const struct coop_tool *tool_of(struct coop_mcp_request *request)
{
	const json_t *name = json_object_get(request->params, "name");
	const json_t *args = json_object_get(request->params, "arguments");
	const struct coop_tool *tool =
		json_is_string(name) ? coop_tool_find(json_string_value(name)) : NULL;

	if (!json_is_string(name)) {
		coop_mcp_error(request, COOP_MCP_INVALID_PARAMS, NULL,
			       "params.name must be a string");
	} else if (!tool || !(tool->sets & request->mcp->sets) ||
		   strlen(tool->name) != json_string_length(name)) {
		coop_mcp_error(request, COOP_MCP_INVALID_PARAMS, NULL,
			       "there is no tool %.100s: tools/list has those there are",
			       json_string_value(name));
	} else if (args && !json_is_object(args)) {
		coop_mcp_error(request, COOP_MCP_INVALID_PARAMS, NULL,
			       "params.arguments must be an object");
	} else {
		return tool;
	}
	return NULL;
}

json_t *coop_mcp_tool_result(enum coop_tool_outcome outcome, json_t *result)
{
	char *text = json_dumps(result, JSON_COMPACT);
	json_t *value = text ? json_pack("{s:[{s:s, s:s}], s:O, s:b}", "content", "type", "text",
					 "text", text, "structuredContent", result, "isError",
					 outcome != COOP_TOOL_OK)
			     : NULL;

	free(text);
	return value;
}

/* The same as text: a large result is written once, not copied through a tree. */
static void answer(struct coop_mcp_request *request, enum coop_tool_outcome outcome,
		   const json_t *result)
{
	struct coop_buf out = {0}, text = {0};
	struct coop_jsonw w = {.out = &out}, inner = {.out = &text};

	coop_jsonw_value(&inner, NULL, result);
	inner.failed = inner.failed || coop_buf_append(&text, "", 1) < 0;
	if (inner.failed) {
		coop_buf_clear(&text);
		coop_mcp_error(request, COOP_MCP_INTERNAL, NULL,
			       "there is no memory for the result");
		return;
	}
	const char *json = (char *)coop_buf_front(&text);
	size_t size = coop_buf_size(&text) - 1;
	/* It comes twice, once of it quoted. */
	(void)coop_buf_reserve(&out, 2 * size + size / 8 + ENVELOPE_BYTES);
	coop_mcp_result_begin(request, &w);
	coop_jsonw_array(&w, "content");
	coop_jsonw_begin(&w, NULL);
	coop_jsonw_string(&w, "type", "text");
	coop_jsonw_text(&w, "text", json, size);
	coop_jsonw_end(&w);
	coop_jsonw_array_end(&w);
	coop_jsonw_raw(&w, "structuredContent", json);
	coop_jsonw_bool(&w, "isError", outcome != COOP_TOOL_OK);
	coop_buf_clear(&text);
	coop_mcp_result_end(request, &w);
}

static void on_done(void *context, enum coop_tool_outcome outcome, json_t *result)
{
	answer(context, outcome, result);
}

static void on_quick_done(void *context, enum coop_tool_outcome outcome, json_t *result)
{
	struct coop_mcp_request *request = context;
	struct coop_mcp *mcp = request->mcp;

	mcp->quick--;
	answer(request, outcome, result);
	coop_mcp_resume(mcp);
}

static void on_progress(void *context, const char *message)
{
	coop_mcp_progress(context, message);
}

static void cancel(struct coop_mcp_request *request)
{
	coop_tool_cancel(request->context);
}

static void cancel_quick(struct coop_mcp_request *request)
{
	request->mcp->quick--;
	coop_tool_cancel(request->context);
	coop_mcp_resume(request->mcp);
}

static void cancel_queued(struct coop_mcp_request *request)
{
	coop_list_remove(&request->in_queue);
}

static bool is_quick(const struct coop_tool *tool)
{
	return (tool->kind == COOP_TOOL_LOOK || tool->kind == COOP_TOOL_MOVE) && !tool->waits;
}

static void start(struct coop_mcp_request *request, const struct coop_tool *tool)
{
	bool quick = is_quick(tool);
	const struct coop_tool_client client = {.done = quick ? on_quick_done : on_done,
						.progress = request->progress_token ? on_progress
										    : NULL,
						.context = request};

	request->context = coop_tool_run(request->mcp->host, request->mcp->setup, tool,
					 json_object_get(request->params, "arguments"), &client);
	if (request->context) {
		request->cancel = quick ? cancel_quick : cancel;
		request->mcp->quick += quick;
	} else {
		coop_mcp_error(request, COOP_MCP_INTERNAL, NULL, "there is no memory for the call");
	}
}

static bool may_start(const struct coop_mcp *mcp, const struct coop_mcp_request *request)
{
	return mcp->quick < QUICK_MAX &&
	       (!request->channel->has_room || request->channel->has_room(request->channel));
}

void coop_mcp_resume(struct coop_mcp *mcp)
{
	struct coop_mcp_request *request;

	while ((request = COOP_LIST_FIRST(&mcp->queued, struct coop_mcp_request, in_queue)) &&
	       !mcp->clearing && may_start(mcp, request)) {
		coop_list_remove(&request->in_queue);
		request->cancel = NULL;
		start(request, tool_of(request));
	}
}

static void call(struct coop_mcp_request *request)
{
	const struct coop_tool *tool = tool_of(request);

	if (!tool || coop_mcp_tasks_take(request))
		return;
	struct coop_link *queued = &request->mcp->queued;
	if (is_quick(tool) && (!coop_list_empty(queued) || !may_start(request->mcp, request))) {
		coop_list_add(queued, &request->in_queue);
		request->cancel = cancel_queued;
	} else {
		start(request, tool);
	}
}

const struct coop_mcp_method coop_mcp_methods_tools[] = {
	{"tools/call", true, true, call},
	{"tools/list", true, true, list},
	{0},
};
