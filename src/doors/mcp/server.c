/* One server: its requests, and what opens a conversation. */
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "doors/mcp/mcp.h"
#include "doors/mcp/methods.h"
#include "doors/mcp/request.h"
#include "doors/tools/core/call.h"

#define PROGRESS_MS 500

static const char *const versions[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25",
				       "2026-07-28"};
#define VERSIONS (int)(sizeof versions / sizeof versions[0])

static const char instructions_text[] =
	"coop runs commands for you in a sandbox and keeps them: nothing is lost when a call ends. "
	"run_command waits and returns the output; wait:false starts servers and long jobs in the "
	"background. Do not poll: wait_any waits for a port, a line of output or an end. Output "
	"too long "
	"for a result stays readable: read_process_output with grep, offset or reader. Interactive "
	"programs need open_shell; read_screen shows full-screen ones. Lost an id? list_processes.";

int coop_mcp_version_of(const char *name)
{
	for (int i = 0; name && i < VERSIONS; i++)
		if (strcmp(name, versions[i]) == 0)
			return i;
	return COOP_MCP_NONE;
}

void coop_mcp_init(struct coop_mcp *mcp, const struct coop_tool_host *host,
		   const struct coop_tool_setup *setup, unsigned sets)
{
	*mcp = (struct coop_mcp){.host = host, .setup = setup, .sets = sets};
	coop_list_init(&mcp->queued);
}

void coop_mcp_request_free(struct coop_mcp_request *request)
{
	*request->link = request->next;
	if (request->next)
		request->next->link = request->link;
	request->mcp->open--;
	json_decref(request->id);
	json_decref(request->params);
	free(request);
}

void coop_mcp_cancel(struct coop_mcp_request *request)
{
	struct coop_mcp_channel *channel = request->channel;

	if (request->cancel)
		request->cancel(request);
	coop_mcp_request_free(request);
	if (channel->cancelled)
		channel->cancelled(channel);
}

void coop_mcp_clear(struct coop_mcp *mcp)
{
	mcp->stopping = mcp->clearing = true;
	while (mcp->requests)
		coop_mcp_cancel(mcp->requests);
	coop_mcp_tasks_free(mcp->tasks);
	coop_mcp_watch_free(mcp->watch);
	mcp->tasks = NULL;
	mcp->watch = NULL;
}

void coop_mcp_stop(struct coop_mcp *mcp)
{
	mcp->stopping = true;
	coop_mcp_subscriptions_stop(mcp);
}

void coop_mcp_session_clear(struct coop_mcp *mcp, struct coop_mcp_session *session)
{
	struct coop_mcp_request *request = mcp->requests;

	while (request) {
		struct coop_mcp_request *next = request->next;
		/* Ending one may end others: begin anew. */
		if (request->session == session) {
			coop_mcp_cancel(request);
			next = mcp->requests;
		}
		request = next;
	}
	coop_mcp_subscriptions_forget(session);
}

struct coop_mcp_request *coop_mcp_find(const struct coop_mcp *mcp,
				       const struct coop_mcp_channel *channel,
				       const struct coop_mcp_session *session, const json_t *id)
{
	for (struct coop_mcp_request *request = mcp->requests; request; request = request->next)
		if ((request->channel == channel || (session && request->session == session)) &&
		    json_equal(request->id, id))
			return request;
	return NULL;
}

void coop_mcp_progress(struct coop_mcp_request *request, const char *message)
{
	uint64_t now = (uint64_t)coop_tool_now();

	if (!request->progress_token ||
	    (request->progress_at && now - request->progress_at < PROGRESS_MS) ||
	    (request->channel->has_room && !request->channel->has_room(request->channel)))
		return;
	request->progress_at = now;
	coop_mcp_notify(request->channel, "notifications/progress",
			json_pack("{s:O, s:I, s:s}", "progressToken", request->progress_token,
				  "progress", (json_int_t)++request->progress, "message", message));
}

/* What a command may do is no news that a model should learn from its failures. */
static json_t *instructions(const struct coop_mcp_request *request)
{
	const struct coop_tool_setup *setup = request->mcp->setup;
	const char *profile = setup->profile ? setup->profile : "workspace-write";

	if (strcmp(profile, "full") == 0)
		return json_sprintf("%s Commands are not confined here.", instructions_text);
	if (strcmp(profile, "workspace-write") != 0 || !setup->workspace)
		return json_sprintf("%s The sandbox is \"%s\"; /tmp can be written to.",
				    instructions_text, profile);
	return json_sprintf(
		"%s Commands can write to %s (not to .git/hooks and the like) and to a private "
		"/tmp, and reach no network but their own loopback.",
		instructions_text, setup->workspace);
}

static json_t *capabilities(const struct coop_mcp_request *request)
{
	json_t *value = json_pack("{s:{}, s:{s:b, s:b}}", "tools", "resources", "subscribe", 1,
				  "listChanged", 1);

	if (value && coop_mcp_is_modern(request))
		(void)json_object_set_new(value, "extensions",
					  json_pack("{s:{}}", "io.modelcontextprotocol/tasks"));
	return value;
}

static void initialize(struct coop_mcp_request *request)
{
	struct coop_mcp_session *session = request->session;
	int wanted = coop_mcp_version_of(
		json_string_value(json_object_get(request->params, "protocolVersion")));

	if (!json_is_string(json_object_get(request->params, "protocolVersion"))) {
		coop_mcp_error(request, COOP_MCP_INVALID_PARAMS, NULL,
			       "params.protocolVersion must be a string");
		return;
	}
	if (wanted == COOP_MCP_NONE || wanted == COOP_MCP_MODERN)
		wanted = COOP_MCP_LEGACY_LATEST;
	session->version = request->version = wanted;
	coop_mcp_answer(request, json_pack("{s:s, s:o, s:{s:s, s:s, s:s}, s:o}", "protocolVersion",
					   versions[wanted], "capabilities", capabilities(request),
					   "serverInfo", "name", "coop", "title", "coop", "version",
					   COOP_VERSION, "instructions", instructions(request)));
}

static void ping(struct coop_mcp_request *request)
{
	coop_mcp_answer(request, json_object());
}

json_t *coop_mcp_versions(void)
{
	json_t *list = json_array();

	for (int i = VERSIONS - 1; list && i >= 0; i--)
		(void)json_array_append_new(list, json_string(versions[i]));
	return list;
}

static void discover(struct coop_mcp_request *request)
{
	json_t *result = json_pack("{s:o, s:o, s:o}", "supportedVersions", coop_mcp_versions(),
				   "capabilities", capabilities(request), "instructions",
				   instructions(request));

	if (result)
		coop_mcp_cacheable(request, result, 3600000, "private");
	coop_mcp_answer(request, result);
}

const struct coop_mcp_method coop_mcp_methods_base[] = {
	{"initialize", true, false, initialize},
	{"ping", true, false, ping},
	{"server/discover", false, true, discover},
	{0},
};
