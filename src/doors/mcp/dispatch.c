/* From a message to the method that it asks for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "doors/mcp/fixtures.h"
#include "doors/mcp/mcp.h"
#include "doors/mcp/methods.h"
#include "doors/mcp/request.h"

#define META "io.modelcontextprotocol/"

static const struct coop_mcp_method *const tables[] = {
	coop_mcp_methods_base,          coop_mcp_methods_tools, coop_mcp_methods_resources,
	coop_mcp_methods_subscriptions, coop_mcp_methods_tasks,
};

static const struct coop_mcp_method *find_method(const char *name, bool modern)
{
	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
		for (const struct coop_mcp_method *method = tables[i]; method->name; method++)
			if (strcmp(method->name, name) == 0 &&
			    (modern ? method->modern : method->legacy))
				return method;
	return NULL;
}

/* What a message says of itself. */
struct envelope {
	const char *method;
	json_t *id, *params, *meta;
	bool modern;
	int version;
};

static int refuse(struct coop_mcp_channel *channel, const struct envelope *envelope,
		  enum coop_mcp_code code, json_t *data, const char *message)
{
	coop_mcp_refuse_id(channel, envelope->id, code, data, message);
	return -1;
}

/* The metadata that every modern request carries. */
static int check_modern(struct coop_mcp_channel *channel, struct envelope *envelope)
{
	const json_t *version = json_object_get(envelope->meta, META "protocolVersion");
	const json_t *capabilities = json_object_get(envelope->meta, META "clientCapabilities");

	if (!json_is_string(version))
		return refuse(channel, envelope, COOP_MCP_INVALID_PARAMS, NULL,
			      "params._meta[\"" META "protocolVersion\"] must be a string");
	envelope->version = coop_mcp_version_of(json_string_value(version));
	if (envelope->version != COOP_MCP_MODERN)
		return refuse(channel, envelope, COOP_MCP_NO_VERSION,
			      json_pack("{s:o, s:O}", "supported", coop_mcp_versions(), "requested",
					version),
			      "this protocol version is not served this way");
	if (!json_is_object(capabilities))
		return refuse(channel, envelope, COOP_MCP_INVALID_PARAMS, NULL,
			      "params._meta[\"" META "clientCapabilities\"] must be an object");
	return 0;
}

static int check_legacy(struct coop_mcp_channel *channel, const struct coop_mcp_session *session,
			struct envelope *envelope)
{
	envelope->version = session ? session->version : COOP_MCP_NONE;
	if (session &&
	    (strcmp(envelope->method, "initialize") == 0 || strcmp(envelope->method, "ping") == 0))
		return 0;
	if (envelope->version != COOP_MCP_NONE)
		return 0;
	return refuse(channel, envelope, COOP_MCP_INVALID_PARAMS, NULL,
		      "begin with initialize, or put " META "protocolVersion and " META
		      "clientCapabilities into params._meta");
}

static int open_envelope(struct coop_mcp_channel *channel, const struct coop_mcp_session *session,
			 json_t *message, struct envelope *ret)
{
	const json_t *jsonrpc = json_object_get(message, "jsonrpc");
	const json_t *method = json_object_get(message, "method");

	*ret = (struct envelope){.method = json_string_value(method),
				 .id = json_object_get(message, "id"),
				 .params = json_object_get(message, "params")};
	if (ret->id && !json_is_string(ret->id) && !json_is_integer(ret->id)) {
		ret->id = NULL;
		return refuse(channel, ret, COOP_MCP_INVALID_REQUEST, NULL,
			      "id must be a string or an integer");
	}
	if (!json_is_string(jsonrpc) || strcmp(json_string_value(jsonrpc), "2.0") != 0)
		return refuse(channel, ret, COOP_MCP_INVALID_REQUEST, NULL,
			      "jsonrpc must be \"2.0\"");
	if (!ret->method || strlen(ret->method) != json_string_length(method))
		return refuse(channel, ret, COOP_MCP_INVALID_REQUEST, NULL,
			      "method must be a string");
	/* Who passes messages on could take it for the one, and we for the other. */
	if (json_object_get(message, "result") || json_object_get(message, "error"))
		return refuse(channel, ret, COOP_MCP_INVALID_REQUEST, NULL,
			      "a message is a request or an answer, not both");
	if (ret->params && !json_is_object(ret->params))
		return refuse(channel, ret, COOP_MCP_INVALID_PARAMS, NULL,
			      "params must be an object");
	ret->meta = json_object_get(ret->params, "_meta");
	if (ret->meta && !json_is_object(ret->meta))
		return refuse(channel, ret, COOP_MCP_INVALID_PARAMS, NULL,
			      "params._meta must be an object");
	ret->modern = json_object_get(ret->meta, META "protocolVersion") != NULL;
	if (!ret->id)
		return 0;
	return ret->modern ? check_modern(channel, ret) : check_legacy(channel, session, ret);
}

static struct coop_mcp_request *new_request(struct coop_mcp *mcp, struct coop_mcp_session *session,
					    struct coop_mcp_channel *channel,
					    const struct envelope *envelope)
{
	struct coop_mcp_request *request = coop_mem_zalloc(sizeof *request);

	if (!request)
		return NULL;
	request->params = envelope->params ? json_incref(envelope->params) : json_object();
	if (!request->params) {
		free(request);
		return NULL;
	}
	request->mcp = mcp;
	request->channel = channel;
	request->session = envelope->modern ? NULL : session;
	request->version = envelope->version;
	request->id = json_incref(envelope->id);
	request->capabilities = json_object_get(envelope->meta, META "clientCapabilities");
	request->progress_token = json_object_get(envelope->meta, "progressToken");
	if (!json_is_string(request->progress_token) && !json_is_integer(request->progress_token))
		request->progress_token = NULL;
	request->next = mcp->requests;
	request->link = &mcp->requests;
	if (request->next)
		request->next->link = &request->next;
	mcp->requests = request;
	mcp->open++;
	return request;
}

static void take_notification(struct coop_mcp *mcp, struct coop_mcp_session *session,
			      struct coop_mcp_channel *channel, const struct envelope *envelope)
{
	if (strcmp(envelope->method, "notifications/initialized") == 0 && session) {
		session->initialized = true;
	} else if (strcmp(envelope->method, "notifications/cancelled") == 0) {
		const json_t *id = json_object_get(envelope->params, "requestId");
		struct coop_mcp_request *request =
			id ? coop_mcp_find(mcp, channel, session, id) : NULL;
		if (request)
			coop_mcp_cancel(request);
	}
}

unsigned coop_mcp_take_one(struct coop_mcp *mcp, struct coop_mcp_session *session,
			   struct coop_mcp_channel *channel, json_t *message)
{
	struct envelope envelope;

	if (!json_is_object(message)) {
		coop_mcp_refuse(channel, COOP_MCP_INVALID_REQUEST, "a message must be an object");
		return 1;
	}
	/* Answers to requests: none were sent. */
	if (!json_object_get(message, "method") &&
	    (json_object_get(message, "result") || json_object_get(message, "error")))
		return 0;
	if (open_envelope(channel, session, message, &envelope) < 0)
		return 1;
	if (!envelope.id) {
		take_notification(mcp, session, channel, &envelope);
		return 0;
	}
	if (coop_mcp_find(mcp, channel, envelope.modern ? NULL : session, envelope.id)) {
		coop_mcp_refuse_id(channel, envelope.id, COOP_MCP_INVALID_REQUEST, NULL,
				   "a request with this id is open");
		return 1;
	}
	if (mcp->open >= COOP_MCP_OPEN_MAX || mcp->stopping) {
		coop_mcp_refuse_id(channel, envelope.id, COOP_MCP_BUSY, NULL,
				   mcp->stopping
					   ? "the server is leaving"
					   : "too many requests are open: wait for some of them");
		return 1;
	}
	struct coop_mcp_request *request = new_request(mcp, session, channel, &envelope);
	if (!request) {
		coop_mcp_refuse_id(channel, envelope.id, COOP_MCP_INTERNAL, NULL,
				   "there is no memory for the request");
		return 1;
	}
	if (coop_mcp_fixture_take(request, envelope.method))
		return 1;
	const struct coop_mcp_method *method = find_method(envelope.method, envelope.modern);
	if (method)
		method->handle(request);
	else
		coop_mcp_error(request, COOP_MCP_NO_METHOD, NULL, "there is no method %.100s",
			       envelope.method);
	return 1;
}

unsigned coop_mcp_take(struct coop_mcp *mcp, struct coop_mcp_session *session,
		       struct coop_mcp_channel *channel, json_t *message)
{
	if (!json_is_array(message))
		return coop_mcp_take_one(mcp, session, channel, message);
	if (session && session->version == COOP_MCP_2025_03_26)
		return coop_mcp_take_batch(mcp, session, channel, message);
	coop_mcp_refuse(
		channel, COOP_MCP_INVALID_REQUEST,
		"batches belong to protocol version 2025-03-26: send one message at a time");
	return 1;
}
