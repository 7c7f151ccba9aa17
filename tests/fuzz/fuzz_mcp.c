/* Messages of MCP: whatever comes is answered or ignored, every answer is one line of JSON, and
 * nothing is left open. */
#include <assert.h>
#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "doors/mcp/mcp.h"

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

static unsigned answers;

static void on_send(struct coop_mcp_channel *channel, const char *json, size_t size, bool last)
{
	(void)channel;
	assert(!memchr(json, '\n', size));
	json_t *message = json_loadb(json, size, JSON_ALLOW_NUL, NULL);
	assert(message);
	json_decref(message);
	answers += last;
}

/* A keeper that answers nothing before it is gone. */
struct open_call {
	struct coop_handler handler;
	struct open_call *next, **link;
};
static struct open_call *calls;
static bool gone;

static void *start_call(void *context, const char *op, json_t *args, const void *data, size_t size,
			const struct coop_handler *handler)
{
	struct open_call *call = gone ? NULL : calloc(1, sizeof *call);

	(void)context;
	(void)op;
	(void)data;
	(void)size;
	json_decref(args);
	if (!call)
		return NULL;
	call->handler = *handler;
	call->next = calls;
	call->link = &calls;
	if (calls)
		calls->link = &call->next;
	calls = call;
	return call;
}

static void drop_call(void *handle)
{
	struct open_call *call = handle;

	*call->link = call->next;
	if (call->next)
		call->next->link = call->link;
	free(call);
}

static void fail_calls(void)
{
	const struct coop_error error = {"unreachable", "it is gone", "{}"};

	gone = true;
	while (calls) {
		struct coop_handler handler = calls->handler;
		drop_call(calls);
		if (handler.done)
			handler.done(handler.user, 0, -EPIPE, NULL, &error);
	}
	gone = false;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
	uv_loop_t loop;
	struct coop_tool_host host = {&loop, NULL, start_call, drop_call};
	const struct coop_tool_setup setup = {.max_wait_ms = 1000};
	struct coop_mcp_channel channel = {.send = on_send};
	struct coop_mcp_session session = {.version = COOP_MCP_NONE, .channel = &channel};
	struct coop_mcp mcp;
	const char *at = (const char *)input, *end = at + size;

	assert(uv_loop_init(&loop) == 0);
	coop_mcp_init(&mcp, &host, &setup, COOP_TOOLS_ALL);
	for (; at < end; at++) {
		const char *line = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((line ? line : end) - at);
		json_t *message = coop_mcp_parse(at, length);
		unsigned before = answers;
		if (message)
			assert(coop_mcp_take(&mcp, &session, &channel, message) >= 1 ||
			       answers == before);
		json_decref(message);
		at += length;
	}
	coop_mcp_session_clear(&mcp, &session);
	coop_mcp_clear(&mcp);
	assert(mcp.open == 0);
	fail_calls();
	(void)uv_run(&loop, UV_RUN_DEFAULT);
	assert(uv_loop_close(&loop) == 0);
	return 0;
}
