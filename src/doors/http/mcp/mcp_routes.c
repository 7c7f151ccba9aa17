#include "doors/http/mcp/mcp_routes.h"

#include <string.h>

#include "base/buf.h"
#include "doors/http/mcp/mcp_exchange.h"
#include "doors/http/mcp/mcp_headers.h"
#include "doors/http/mcp/mcp_session.h"
#include "doors/http/mcp/mcp_user.h"
#include "doors/http/net/exchange.h"
#include "doors/mcp/mcp.h"

#define JSON "application/json"
#define EVENTS "text/event-stream"

static const char *method_of(const json_t *message)
{
	const char *method = json_string_value(json_object_get(message, "method"));

	return method ? method : "";
}

static void refuse(struct coop_mcp_exchange *work, unsigned status, enum coop_mcp_code code,
		   const json_t *message, const char *text)
{
	coop_mcp_exchange_refuse(work, status, code, json_object_get(message, "id"), text);
}

/* Whether the client wants to hear more than the answer. */
static bool wants_more(const json_t *message)
{
	const json_t *params = json_object_get(message, "params");
	const json_t *token = json_object_get(json_object_get(params, "_meta"), "progressToken");

	return json_is_string(token) || json_is_integer(token) ||
	       !strcmp(method_of(message), "subscriptions/listen");
}

static bool wants_stream(const json_t *message)
{
	for (size_t i = 0; i < json_array_size(message); i++) {
		if (wants_more(json_array_get(message, i)))
			return true;
	}
	return wants_more(message);
}

static void take_modern(struct coop_mcp_exchange *work, json_t *message)
{
	/* What is malformed altogether has nothing to be compared with. */
	const char *fault = json_is_string(coop_mcp_meta_version(message))
				    ? coop_mcp_header_fault(work->exchange, message)
				    : NULL;

	if (fault)
		refuse(work, 400, COOP_MCP_HEADER_MISMATCH, message, fault);
	else
		coop_mcp_exchange_take(work, NULL, message);
}

/* A message that belongs to no session and does not carry the version. The server refuses it, and
 * says what is wrong with it; but of the modern era's notifications. */
static void take_bare(struct coop_mcp_exchange *work, json_t *message, bool modern)
{
	const char *method = coop_http_header(work->exchange, "mcp-method");
	bool notifies = *method_of(message) && !json_object_get(message, "id");

	if (notifies && !modern)
		refuse(work, 400, COOP_MCP_INVALID_PARAMS, message,
		       "params._meta has no \"" COOP_MCP_META_VERSION
		       "\", and there is no header Mcp-Session-Id");
	else if (notifies && (!method || strcmp(method, method_of(message)) != 0))
		refuse(work, 400, COOP_MCP_HEADER_MISMATCH, message,
		       "the header Mcp-Method must be there and equal the message's method");
	else
		coop_mcp_exchange_take(work, NULL, message);
}

static void open_session(struct coop_mcp_exchange *work, json_t *message)
{
	struct coop_mcp_client *client = coop_mcp_client_new(work->owner);

	if (!client) {
		refuse(work, 503, COOP_MCP_BUSY, message,
		       "too many sessions are open; end one, or try again later");
		return;
	}
	work->opens = true;
	coop_mcp_exchange_take(work, client, message);
}

static void take_legacy(struct coop_mcp_exchange *work, json_t *message, const char *version)
{
	const char *id = coop_http_header(work->exchange, "mcp-session-id");
	struct coop_mcp_client *client = id ? coop_mcp_client_find(work->owner, id) : NULL;

	if (version && coop_mcp_version_of(version) == COOP_MCP_NONE)
		refuse(work, 400, COOP_MCP_INVALID_REQUEST, message,
		       "the header MCP-Protocol-Version names a revision that is not known here");
	else if (!id)
		take_bare(work, message, false);
	else if (!client)
		refuse(work, 404, COOP_MCP_INVALID_REQUEST, message,
		       "there is no such session (any more); begin again with initialize");
	else
		coop_mcp_exchange_take(work, client, message);
}

/* Which era a message is of, and on with it. */
static void take(struct coop_mcp_exchange *work, json_t *message)
{
	const char *version = coop_http_header(work->exchange, "mcp-protocol-version");
	bool modern = version && coop_mcp_version_of(version) == COOP_MCP_MODERN;

	work->wants_stream = wants_stream(message);
	if (coop_mcp_meta_version(message))
		take_modern(work, message);
	else if (!strcmp(method_of(message), "initialize"))
		open_session(work, message);
	else if (modern)
		take_bare(work, message, true);
	else
		take_legacy(work, message, version);
}

static void on_whole(struct coop_mcp_exchange *work)
{
	json_t *message = coop_mcp_parse((const char *)coop_buf_front(&work->body),
					 coop_buf_size(&work->body));

	coop_buf_clear(&work->body);
	if (message)
		take(work, message);
	else
		refuse(work, 400, COOP_MCP_PARSE, NULL, "the body is no JSON text, or too deep");
	json_decref(message);
}

static void post(struct coop_http_exchange *exchange)
{
	if (!coop_mcp_is_json(exchange))
		coop_http_refuse(exchange, 415, "invalid_argument",
				 "the Content-Type must be " JSON);
	else if (!coop_mcp_accepts(exchange, JSON) || !coop_mcp_accepts(exchange, EVENTS))
		coop_http_refuse(exchange, 406, "invalid_argument",
				 "Accept must allow both " JSON " and " EVENTS);
	else if (exchange->body_length > (int64_t)COOP_MCP_BODY_MAX)
		coop_http_refuse(exchange, 413, "too_large", "the body is larger than %u bytes",
				 COOP_MCP_BODY_MAX);
	else
		(void)coop_mcp_exchange_new(exchange, on_whole);
}

/* The session of a GET or DELETE. NULL: it has been refused. */
static struct coop_mcp_client *session_of(struct coop_http_exchange *exchange)
{
	const char *id = coop_http_header(exchange, "mcp-session-id");
	struct coop_mcp_user *owner = id ? coop_mcp_user_get(exchange) : NULL;

	if (!id) {
		coop_http_add_header(exchange, "Allow: POST");
		coop_http_refuse(exchange, 405, "method_not_allowed",
				 "%s is for sessions (Mcp-Session-Id) alone", exchange->method);
		return NULL;
	}
	if (!owner)
		return NULL;
	struct coop_mcp_client *client = coop_mcp_client_find(owner, id);
	if (!client)
		coop_http_refuse(exchange, 404, "not_found", "there is no such session (any more)");
	return client;
}

static void get(struct coop_http_exchange *exchange)
{
	struct coop_mcp_client *client = session_of(exchange);

	if (!client)
		return;
	if (!coop_mcp_accepts(exchange, EVENTS)) {
		coop_http_refuse(exchange, 406, "invalid_argument", "Accept must allow " EVENTS);
		return;
	}
	if (client->stream) {
		coop_http_refuse(exchange, 409, "conflict",
				 "the session has a stream already, and one is all");
		return;
	}
	struct coop_mcp_exchange *work = coop_mcp_exchange_new(exchange, NULL);
	if (work)
		coop_mcp_exchange_follow(work, client);
}

static void end(struct coop_http_exchange *exchange)
{
	struct coop_mcp_client *client = session_of(exchange);

	if (!client)
		return;
	coop_mcp_client_end(client);
	coop_http_answer(exchange, 204, JSON, "", 0);
}

const struct coop_http_route coop_routes_mcp[] = {
	{"POST", "/mcp", 0, COOP_BODY_STREAM, 0, post},
	{"GET", "/mcp", 0, COOP_BODY_NONE, 0, get},
	{"DELETE", "/mcp", 0, COOP_BODY_NONE, 0, end},
	{0},
};
