/* Messages of JSON-RPC: parsing, answers, errors, notifications. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json/jsonw.h"
#include "doors/mcp/mcp.h"
#include "doors/mcp/request.h"

static bool too_deep(const char *text, size_t size)
{
	unsigned depth = 0;
	bool quoted = false;

	for (size_t i = 0; i < size; i++) {
		if (quoted && text[i] == '\\')
			i++;
		else if (text[i] == '"')
			quoted = !quoted;
		else if (!quoted && (text[i] == '{' || text[i] == '[') &&
			 ++depth > COOP_MCP_DEPTH_MAX)
			return true;
		else if (!quoted && (text[i] == '}' || text[i] == ']') && depth)
			depth--;
	}
	return false;
}

json_t *coop_mcp_parse(const char *text, size_t size)
{
	if (too_deep(text, size))
		return NULL;
	return json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY,
			  NULL);
}

/* Without memory nothing is sent: the client's own limit of time ends the request. */
static void send_text(struct coop_mcp_channel *channel, struct coop_buf *text, bool failed,
		      bool last)
{
	static const char poor[] = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32603,"
				   "\"message\":\"there is no memory for the answer\"}}";

	if (failed)
		channel->send(channel, poor, sizeof poor - 1, last);
	else
		channel->send(channel, (const char *)coop_buf_front(text), coop_buf_size(text),
			      last);
	coop_buf_clear(text);
}

static void write_value(struct coop_jsonw *w, const char *name, const json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

	if (text)
		coop_jsonw_raw(w, name, text);
	else
		w->failed = true;
	free(text);
}

static void begin(struct coop_jsonw *w, const json_t *id)
{
	coop_jsonw_begin(w, NULL);
	coop_jsonw_string(w, "jsonrpc", "2.0");
	if (id)
		write_value(w, "id", id);
	else
		coop_jsonw_null(w, "id");
}

void coop_mcp_result_begin(const struct coop_mcp_request *request, struct coop_jsonw *w)
{
	begin(w, request->id);
	coop_jsonw_begin(w, "result");
}

void coop_mcp_result_end(struct coop_mcp_request *request, struct coop_jsonw *w)
{
	static const char info[] = "{\"io.modelcontextprotocol/serverInfo\":{\"name\":\"coop\","
				   "\"version\":\"" COOP_VERSION "\"}}";

	if (coop_mcp_is_modern(request)) {
		coop_jsonw_string(w, "resultType", "complete");
		coop_jsonw_raw(w, "_meta", info);
	}
	coop_jsonw_end(w);
	coop_jsonw_end(w);
	if (w->failed) {
		coop_buf_clear(w->out);
		coop_mcp_error(request, COOP_MCP_INTERNAL, NULL,
			       "there is no memory for the result");
		return;
	}
	struct coop_mcp_channel *channel = request->channel;
	coop_mcp_request_free(request);
	send_text(channel, w->out, false, true);
}

/* A result that has _meta or resultType of its own keeps them. */
static void add_missing(json_t *result)
{
	json_t *meta = json_object_get(result, "_meta");

	if (!json_object_get(result, "resultType"))
		(void)json_object_set_new(result, "resultType", json_string("complete"));
	if (!meta) {
		meta = json_object();
		(void)json_object_set_new(result, "_meta", meta);
	}
	(void)json_object_set_new(meta, "io.modelcontextprotocol/serverInfo",
				  json_pack("{s:s, s:s}", "name", "coop", "version", COOP_VERSION));
}

void coop_mcp_answer(struct coop_mcp_request *request, json_t *result)
{
	struct coop_buf out = {0};
	struct coop_jsonw w = {.out = &out};

	if (result && coop_mcp_is_modern(request))
		add_missing(result);
	begin(&w, request->id);
	write_value(&w, "result", result);
	coop_jsonw_end(&w);
	json_decref(result);
	struct coop_mcp_channel *channel = request->channel;
	coop_mcp_request_free(request);
	send_text(channel, &out, w.failed, true);
}

static void write_error(struct coop_jsonw *w, const json_t *id, int code, const char *message,
			const json_t *data)
{
	begin(w, id);
	coop_jsonw_begin(w, "error");
	coop_jsonw_int(w, "code", code);
	coop_jsonw_string(w, "message", message);
	if (data)
		write_value(w, "data", data);
	coop_jsonw_end(w);
	coop_jsonw_end(w);
}

static unsigned status_of(enum coop_mcp_code code)
{
	switch (code) {
	case COOP_MCP_NO_METHOD:
		return 404;
	case COOP_MCP_PARSE:
	case COOP_MCP_INVALID_REQUEST:
	case COOP_MCP_HEADER_MISMATCH:
	case COOP_MCP_NO_CAPABILITY:
	case COOP_MCP_NO_VERSION:
		return 400;
	case COOP_MCP_BUSY:
		return 503;
	case COOP_MCP_INVALID_PARAMS:
	case COOP_MCP_INTERNAL:
	case COOP_MCP_NO_RESOURCE:
		return 0;
	}
	return 0;
}

void coop_mcp_error(struct coop_mcp_request *request, enum coop_mcp_code code, json_t *data,
		    const char *format, ...)
{
	struct coop_buf out = {0};
	struct coop_jsonw w = {.out = &out};
	char message[512];
	va_list list;

	va_start(list, format);
	(void)vsnprintf(message, sizeof message, format, list);
	va_end(list);
	write_error(&w, request->id, code, message, data);
	json_decref(data);
	struct coop_mcp_channel *channel = request->channel;
	/* Legacy clients are told by the message alone. */
	if (channel->status && coop_mcp_is_modern(request) && status_of(code))
		channel->status(channel, status_of(code));
	coop_mcp_request_free(request);
	send_text(channel, &out, w.failed, true);
}

void coop_mcp_refuse_id(struct coop_mcp_channel *channel, const json_t *id, enum coop_mcp_code code,
			json_t *data, const char *message)
{
	struct coop_buf out = {0};
	struct coop_jsonw w = {.out = &out};

	write_error(&w, id, code, message, data);
	json_decref(data);
	if (channel->status)
		channel->status(channel, status_of(code) ? status_of(code) : 400);
	send_text(channel, &out, w.failed, true);
}

void coop_mcp_refuse(struct coop_mcp_channel *channel, enum coop_mcp_code code, const char *message)
{
	coop_mcp_refuse_id(channel, NULL, code, NULL, message);
}

void coop_mcp_notify(struct coop_mcp_channel *channel, const char *method, json_t *params)
{
	struct coop_buf out = {0};
	struct coop_jsonw w = {.out = &out};

	coop_jsonw_begin(&w, NULL);
	coop_jsonw_string(&w, "jsonrpc", "2.0");
	coop_jsonw_string(&w, "method", method);
	if (params)
		write_value(&w, "params", params);
	coop_jsonw_end(&w);
	json_decref(params);
	/* A notification that there is no memory for is left out. */
	if (w.failed)
		coop_buf_clear(&out);
	else
		send_text(channel, &out, false, false);
}

void coop_mcp_cacheable(const struct coop_mcp_request *request, json_t *result, int64_t ttl_ms,
			const char *scope)
{
	if (!coop_mcp_is_modern(request))
		return;
	(void)json_object_set_new(result, "ttlMs", json_integer(ttl_ms));
	(void)json_object_set_new(result, "cacheScope", json_string(scope));
}

const char *coop_mcp_plain(const json_t *value)
{
	const char *text = json_string_value(value);

	return text && strlen(text) == json_string_length(value) ? text : NULL;
}

bool coop_mcp_declares_tasks(const struct coop_mcp_request *request)
{
	const json_t *extensions = json_object_get(request->capabilities, "extensions");

	return coop_mcp_is_modern(request) &&
	       json_is_object(json_object_get(extensions, COOP_MCP_TASKS_EXTENSION));
}
