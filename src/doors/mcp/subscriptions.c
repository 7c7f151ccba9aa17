#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "doors/mcp/mcp.h"
#include "doors/mcp/methods.h"
#include "doors/mcp/process_uri.h"
#include "doors/mcp/request.h"
#include "doors/mcp/resources.h"
#include "doors/mcp/subscription.h"

/* A subscription while the keeper is asked which of its processes there are. */
struct asking {
	struct coop_mcp_request *request;
	void *call;
};

static void cancel_asking(struct coop_mcp_request *request)
{
	struct asking *asking = request->context;

	request->mcp->host->drop(asking->call);
	free(asking);
}

static void no_memory(struct coop_mcp_request *request)
{
	coop_mcp_error(request, COOP_MCP_INTERNAL, NULL, "no memory is left for this");
}

/* Asks for the records of `ids`, which is taken over. */
static void ask(struct coop_mcp_request *request, json_t *ids,
		void (*done)(void *, uint64_t, int, const char *, const struct coop_error *))
{
	const struct coop_tool_host *host = request->mcp->host;
	struct asking *asking = coop_mem_zalloc(sizeof *asking);
	const struct coop_handler handler = {.done = done, .user = asking};
	json_t *args = json_pack("{s:o}", "ids", ids);

	if (asking && args)
		asking->call =
			host->call(host->context, "status", json_incref(args), NULL, 0, &handler);
	json_decref(args);
	if (!asking || !asking->call) {
		free(asking);
		no_memory(request);
		return;
	}
	asking->request = request;
	request->context = asking;
	request->cancel = cancel_asking;
}

/* The request whose answer this is; nothing of the question is left. */
static struct coop_mcp_request *answered(struct asking *asking)
{
	struct coop_mcp_request *request = asking->request;

	request->cancel = NULL;
	request->context = NULL;
	free(asking);
	return request;
}

static bool has(const json_t *answer, const char *id)
{
	const json_t *record;
	size_t index;

	json_array_foreach(json_object_get(answer, "processes"), index, record)
	{
		const char *found = json_string_value(json_object_get(record, "id"));
		if (found && !strcmp(found, id))
			return true;
	}
	return false;
}

static void keeper_failed(struct coop_mcp_request *request, const struct coop_error *error)
{
	coop_mcp_error(request, COOP_MCP_INTERNAL, json_pack("{s:s}", "code", error->code), "%s",
		       error->message);
}

static void too_many(struct coop_mcp_request *request)
{
	coop_mcp_error(request, COOP_MCP_BUSY, NULL,
		       "too many processes are watched; unsubscribe from some first");
}

static void on_subscribed(void *user, uint64_t id, int status, const char *json,
			  const struct coop_error *error)
{
	struct coop_mcp_request *request = answered(user);
	const char *uri = coop_mcp_plain(json_object_get(request->params, "uri"));
	struct coop_mcp_subscription *subscription;
	struct coop_mcp_process_uri target;
	json_t *answer = json ? json_loads(json, 0, NULL) : NULL;
	int r = -ENOMEM;

	(void)id;
	if (status < 0) {
		keeper_failed(request, error);
	} else if (!coop_mcp_process_uri_read(uri, &target) ||
		   (answer && !has(answer, target.id))) {
		coop_mcp_resource_missing(request, uri);
	} else {
		subscription = coop_mcp_subscription_of(request->mcp, request->session);
		if (answer && subscription)
			r = coop_mcp_subscription_add_process(subscription, &target);
		if (r == 0)
			coop_mcp_answer(request, json_object());
		else if (r == -ENOSPC)
			too_many(request);
		else
			no_memory(request);
	}
	json_decref(answer);
}

/* The address in the request; NULL: it was refused for want of one. */
static const char *uri_of(struct coop_mcp_request *request)
{
	const char *uri = coop_mcp_plain(json_object_get(request->params, "uri"));

	if (!uri)
		coop_mcp_error(request, COOP_MCP_INVALID_PARAMS, NULL,
			       "uri must be a string without NUL");
	return uri;
}

static void subscribe(struct coop_mcp_request *request)
{
	const char *uri = uri_of(request);
	struct coop_mcp_process_uri target;

	if (!uri)
		return;
	if (coop_mcp_process_uri_read(uri, &target))
		ask(request, json_pack("[s]", target.id), on_subscribed);
	else
		coop_mcp_resource_missing(request, uri);
}

static void unsubscribe(struct coop_mcp_request *request)
{
	const char *uri = uri_of(request);

	if (!uri)
		return;
	if (request->session->subscriptions)
		coop_mcp_subscription_remove(request->session->subscriptions, uri);
	coop_mcp_answer(request, json_object());
}

static void cancel_listening(struct coop_mcp_request *request)
{
	coop_mcp_subscription_free(request->context);
	request->context = NULL;
}

/* A list of strings, not too long; absent is fine. */
static bool is_strings(const json_t *list)
{
	const json_t *item;
	size_t index;

	if (!list)
		return true;
	if (!json_is_array(list) || json_array_size(list) > COOP_MCP_NOTICES_MAX)
		return false;
	json_array_foreach(list, index, item)
	{
		if (!coop_mcp_plain(item))
			return false;
	}
	return true;
}

static bool is_choice(const json_t *value)
{
	return !value || json_is_boolean(value);
}

/* Adds the resources that there are and returns them as they were named. */
static json_t *accept_resources(struct coop_mcp_subscription *subscription, const json_t *filter,
				const json_t *answer)
{
	json_t *accepted = json_array(), *item;
	struct coop_mcp_process_uri target;
	size_t index;

	json_array_foreach(json_object_get(filter, "resourceSubscriptions"), index, item)
	{
		if (coop_mcp_process_uri_read(json_string_value(item), &target) &&
		    has(answer, target.id) &&
		    coop_mcp_subscription_add_process(subscription, &target) == 0)
			(void)json_array_append(accepted, item);
	}
	return accepted;
}

static json_t *accept_tasks(struct coop_mcp_request *request,
			    struct coop_mcp_subscription *subscription, const json_t *filter)
{
	json_t *accepted = json_array(), *item;
	size_t index;

	if (!coop_mcp_declares_tasks(request))
		return accepted;
	json_array_foreach(json_object_get(filter, "taskIds"), index, item)
	{
		if (coop_mcp_subscription_add_task(subscription, json_string_value(item)) == 0)
			(void)json_array_append(accepted, item);
	}
	return accepted;
}

/* Takes over `list`; an empty one is left out. */
static void set_accepted(json_t *accepted, const char *name, json_t *list)
{
	if (json_array_size(list))
		(void)json_object_set(accepted, name, list);
	json_decref(list);
}

/* Begins to tell what of the filter there is; what was taken, or NULL without memory. */
static json_t *accept_filter(struct coop_mcp_request *request,
			     struct coop_mcp_subscription *subscription, const json_t *answer)
{
	const json_t *filter = json_object_get(request->params, "notifications");
	json_t *accepted = json_object();

	if (json_is_true(json_object_get(filter, "resourcesListChanged")) &&
	    coop_mcp_subscription_add_list(subscription) == 0)
		(void)json_object_set_new(accepted, "resourcesListChanged", json_true());
	set_accepted(accepted, "resourceSubscriptions",
		     accept_resources(subscription, filter, answer));
	set_accepted(accepted, "taskIds", accept_tasks(request, subscription, filter));
	return accepted;
}

/* The first word of a subscription is what it is about: the others wait for the loop. `answer`
 * NULL: no process was asked for. */
static void listen_now(struct coop_mcp_request *request, const json_t *answer)
{
	struct coop_mcp_subscription *subscription =
		coop_mcp_subscription_new(request->mcp, NULL, request);
	json_t *accepted = subscription ? accept_filter(request, subscription, answer) : NULL;
	json_t *params = json_pack("{s:o, s:o}", "notifications", accepted, "_meta",
				   coop_mcp_subscription_meta(request));

	if (!params) {
		coop_mcp_subscription_free(subscription);
		no_memory(request);
		return;
	}
	request->context = subscription;
	request->cancel = cancel_listening;
	coop_mcp_notify(request->channel, "notifications/subscriptions/acknowledged", params);
}

static void on_known(void *user, uint64_t id, int status, const char *json,
		     const struct coop_error *error)
{
	struct coop_mcp_request *request = answered(user);
	json_t *answer = json ? json_loads(json, 0, NULL) : NULL;

	(void)id;
	if (status < 0)
		keeper_failed(request, error);
	else if (!answer)
		no_memory(request);
	else
		listen_now(request, answer);
	json_decref(answer);
}

static void listen_begin(struct coop_mcp_request *request)
{
	const json_t *filter = json_object_get(request->params, "notifications");
	const json_t *resources = json_object_get(filter, "resourceSubscriptions"), *item;
	struct coop_mcp_process_uri target;
	size_t index;

	if (!json_is_object(filter) || !is_choice(json_object_get(filter, "toolsListChanged")) ||
	    !is_choice(json_object_get(filter, "promptsListChanged")) ||
	    !is_choice(json_object_get(filter, "resourcesListChanged")) || !is_strings(resources) ||
	    !is_strings(json_object_get(filter, "taskIds"))) {
		coop_mcp_error(request, COOP_MCP_INVALID_PARAMS, NULL,
			       "notifications must be an object: toolsListChanged, "
			       "promptsListChanged and resourcesListChanged are booleans, "
			       "resourceSubscriptions and taskIds lists of up to %u strings",
			       COOP_MCP_NOTICES_MAX);
		return;
	}
	json_t *ids = json_array();
	json_array_foreach(resources, index, item)
	{
		if (coop_mcp_process_uri_read(json_string_value(item), &target))
			(void)json_array_append_new(ids, json_string(target.id));
	}
	if (json_array_size(ids)) {
		ask(request, ids, on_known);
	} else {
		json_decref(ids);
		listen_now(request, NULL);
	}
}

static bool is_open(const struct coop_mcp *mcp, const struct coop_mcp_request *request)
{
	const struct coop_mcp_request *open = mcp->requests;

	while (open && open != request)
		open = open->next;
	return open;
}

/* Both words that the protocol has for it, as one page of it asks for the one and another for the
 * other. */
static void end_listening(struct coop_mcp_request *request)
{
	struct coop_mcp *mcp = request->mcp;

	cancel_listening(request);
	coop_mcp_notify(request->channel, "notifications/cancelled",
			json_pack("{s:O, s:s, s:o}", "requestId", request->id, "reason",
				  "the server is stopping", "_meta",
				  coop_mcp_subscription_meta(request)));
	/* A client that has gone already has taken it along. */
	if (!is_open(mcp, request))
		return;
	request->cancel = NULL;
	coop_mcp_answer(request, json_pack("{s:o}", "_meta", coop_mcp_subscription_meta(request)));
}

void coop_mcp_subscriptions_stop(struct coop_mcp *mcp)
{
	struct coop_mcp_request *request = mcp->requests;

	while (request) {
		if (request->cancel == cancel_listening && request->context) {
			end_listening(request);
			request = mcp->requests;
		} else {
			request = request->next;
		}
	}
}

void coop_mcp_subscriptions_forget(struct coop_mcp_session *session)
{
	coop_mcp_subscription_free(session->subscriptions);
	session->subscriptions = NULL;
}

const struct coop_mcp_method coop_mcp_methods_subscriptions[] = {
	{"resources/subscribe", true, false, subscribe},
	{"resources/unsubscribe", true, false, unsubscribe},
	{"subscriptions/listen", false, true, listen_begin},
	{0},
};
