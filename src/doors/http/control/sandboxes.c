#include "doors/http/control/sandboxes.h"

#include <stdio.h>
#include <string.h>

#include "doors/http/control/sandboxes_args.h"
#include "doors/http/control/sandboxes_list.h"
#include "doors/http/control/sandboxes_options.h"
#include "doors/http/control/sandboxes_query.h"
#include "doors/http/control/sandboxes_view.h"
#include "doors/http/control/sandboxes_work.h"
#include "doors/http/net/exchange.h"
#include "doors/http/runtime/v1/refusal.h"
#include "doors/http/users/detail.h"

#define SESSION_LABEL "session"
#define GRACE_MS 500
#define BODY_MAX (1u << 20)

static void not_found(struct coop_http_exchange *exchange)
{
	coop_http_refuse(exchange, 404, "sandbox_not_found", "there is no such sandbox");
}

/* A work for the sandbox that the path names. NULL: it has been refused. */
static struct coop_sandbox_work *begin_named(struct coop_http_exchange *exchange)
{
	if (!coop_sandbox_is_id(exchange->params[0])) {
		not_found(exchange);
		return NULL;
	}
	struct coop_sandbox_work *work = coop_sandbox_work_new(exchange);
	if (work)
		(void)snprintf(work->id, sizeof work->id, "%s", exchange->params[0]);
	return work;
}

static json_t *name_agent(const struct coop_sandbox_work *work)
{
	return json_pack("{s:s}", "agent", work->id);
}

static void answer_agent(struct coop_sandbox_work *work, const json_t *result,
			 const struct coop_error *error)
{
	if (error)
		coop_sandbox_refuse(work, error);
	else
		coop_sandbox_answer(work->exchange, work->status, json_object_get(result, "agent"),
				    NULL, NULL);
}

static void show(struct coop_http_exchange *exchange)
{
	struct coop_sandbox_work *work = begin_named(exchange);

	if (work)
		coop_sandbox_ask(work, "agent_show", name_agent(work), answer_agent);
}

static void set_timeout(struct coop_http_exchange *exchange)
{
	struct coop_sandbox_work *work = begin_named(exchange);
	json_t *args = work ? name_agent(work) : NULL;

	if (!work)
		return;
	if (args && (!coop_sandbox_only_timeout(exchange) ||
		     !coop_sandbox_take_timeout(exchange, true, args))) {
		json_decref(args);
		return;
	}
	coop_sandbox_ask(work, "agent_set", args, answer_agent);
}

static void answer_removed(struct coop_sandbox_work *work, const json_t *result,
			   const struct coop_error *error)
{
	if (error)
		coop_sandbox_refuse(work, error);
	else
		coop_http_answer_json(work->exchange, 200, "{}", 2);
}

static void remove_one(struct coop_http_exchange *exchange)
{
	struct coop_sandbox_work *work = begin_named(exchange);

	if (work)
		coop_sandbox_ask(work, "agent_remove",
				 json_pack("{s:s, s:i}", "agent", work->id, "grace_ms", GRACE_MS),
				 answer_removed);
}

/* What could not be completed, or nobody waits for, is gone; or it goes at its time. */
static void after_undoing(struct coop_sandbox_work *work, const json_t *result,
			  const struct coop_error *error)
{
	if (work->exchange)
		coop_sandbox_refuse(work, &work->failure);
	else
		coop_sandbox_work_free(work);
}

static void undo(struct coop_sandbox_work *work)
{
	coop_sandbox_ask(work, "agent_remove", name_agent(work), after_undoing);
}

static void revoke_next(struct coop_sandbox_work *work);

/* One that is left does no more harm than it did. */
static void on_revoked(struct coop_sandbox_work *work, const json_t *result,
		       const struct coop_error *error)
{
	revoke_next(work);
}

static void revoke_next(struct coop_sandbox_work *work)
{
	size_t count = json_array_size(work->list);

	if (count < COOP_SANDBOX_TOKENS_MAX + 1) {
		coop_sandbox_answer(work->exchange, work->status, work->agent, work->token,
				    work->warnings);
		return;
	}
	/* They stand in the order in which they were made. */
	json_t *args =
		json_pack("{s:O}", "id", json_object_get(json_array_get(work->list, 0), "id"));
	(void)json_array_remove(work->list, 0);
	coop_sandbox_ask(work, "token_revoke", args, on_revoked);
}

/* Those of its sessions: not what its users have made for it, or for agents below it. */
static void on_tokens(struct coop_sandbox_work *work, const json_t *result,
		      const struct coop_error *error)
{
	const json_t *tokens = json_object_get(result, "tokens");
	const json_t *path = json_object_get(work->agent, "path");

	work->list = error ? NULL : json_array();
	for (size_t i = 0; work->list && i < json_array_size(tokens); i++) {
		json_t *token = json_array_get(tokens, i);
		const char *label = json_string_value(json_object_get(token, "label"));
		if (json_equal(json_object_get(token, "agent"), path) && label &&
		    strcmp(label, SESSION_LABEL) == 0)
			(void)json_array_append(work->list, token);
	}
	revoke_next(work);
}

static void on_token(struct coop_sandbox_work *work, const json_t *result,
		     const struct coop_error *error)
{
	const char *token = json_string_value(json_object_get(result, "token"));

	if (work->stays && (error || !work->exchange)) {
		if (error)
			work->failure = *error;
		undo(work);
		return;
	}
	if (error) {
		coop_sandbox_refuse(work, error);
		return;
	}
	(void)snprintf(work->token, sizeof work->token, "%s", token ? token : "");
	if (work->stays)
		coop_sandbox_answer(work->exchange, work->status, work->agent, work->token,
				    work->warnings);
	else
		coop_sandbox_ask(work, "token_list", name_agent(work), on_tokens);
}

/* The agent is there: now a token for it. */
static void on_agent(struct coop_sandbox_work *work, const json_t *result,
		     const struct coop_error *error)
{
	if (error && work->exchange) {
		coop_sandbox_refuse(work, error);
	} else if (error) {
		coop_sandbox_work_free(work);
	} else if (!work->exchange) {
		undo(work);
	} else {
		work->agent = json_incref(json_object_get(result, "agent"));
		coop_sandbox_ask(work, "token_new",
				 json_pack("{s:s, s:s}", "agent", work->id, "label", SESSION_LABEL),
				 on_token);
	}
}

/* One whose maker has less of the network than it would be left with needs no bound of its own. */
static void on_added(struct coop_sandbox_work *work, const json_t *result,
		     const struct coop_error *error)
{
	json_t *args = work->args;

	work->args = NULL;
	if (error && coop_detail_is(error, "field", "sandbox.network") &&
	    json_object_del(args, "sandbox") == 0) {
		coop_sandbox_ask(work, "agent_add", args, on_agent);
		return;
	}
	json_decref(args);
	on_agent(work, result, error);
}

static void create(struct coop_http_exchange *exchange)
{
	char id[COOP_SANDBOX_ID_SIZE];
	json_t *warnings = NULL;

	if (coop_sandbox_new_id(id) < 0) {
		coop_http_refuse(exchange, 500, "internal", "there are no random numbers");
		return;
	}
	json_t *args = json_pack("{s:s, s:b, s:I}", "agent", id, "folder", 1, "expires_in_ms",
				 (json_int_t)COOP_SANDBOX_TIMEOUT * 1000);
	if (args && (!coop_sandbox_take_timeout(exchange, false, args) ||
		     !coop_sandbox_take_maps(exchange, args) ||
		     !coop_sandbox_take_options(exchange, args, &warnings))) {
		json_decref(args);
		return;
	}
	struct coop_sandbox_work *work = coop_sandbox_work_new(exchange);
	if (!work) {
		json_decref(args);
		json_decref(warnings);
		return;
	}
	memcpy(work->id, id, sizeof work->id);
	work->status = 201;
	work->stays = true;
	work->args = json_deep_copy(args);
	work->warnings = warnings;
	coop_sandbox_ask(work, "agent_add", args, on_added);
}

/* A further token, and maybe more time. */
static void resume(struct coop_http_exchange *exchange)
{
	struct coop_sandbox_work *work = begin_named(exchange);
	json_t *args = work ? name_agent(work) : NULL;

	if (!work)
		return;
	if (args && (!coop_sandbox_only_timeout(exchange) ||
		     !coop_sandbox_take_timeout(exchange, false, args))) {
		json_decref(args);
		return;
	}
	bool longer = json_object_get(args, "expires_in_ms");
	coop_sandbox_ask(work, longer ? "agent_set" : "agent_show", args, on_agent);
}

static void list(struct coop_http_exchange *exchange)
{
	coop_sandboxes_list(exchange);
}

/* There are no snapshots, but of a sandbox that is not there there is nothing to be said. */
static void answer_no_snapshots(struct coop_sandbox_work *work, const json_t *result,
				const struct coop_error *error)
{
	if (error)
		coop_sandbox_refuse(work, error);
	else
		coop_sandbox_answer_value(work->exchange, 200,
					  json_pack("{s:[], s:n}", "snapshots", "next_token"));
}

static void answer_no_checkpoints(struct coop_sandbox_work *work, const json_t *result,
				  const struct coop_error *error)
{
	if (error)
		coop_sandbox_refuse(work, error);
	else
		coop_sandbox_answer_value(work->exchange, 200,
					  json_pack("{s:[]}", "sandbox_checkpoints"));
}

/* Their lists have the parameters of pages, all of which are the first and empty. */
static void list_of_one(struct coop_http_exchange *exchange, coop_sandbox_step *step)
{
	struct coop_sandbox_query query;

	if (!coop_sandbox_query_read(exchange, COOP_QUERY_PAGE, &query))
		return;
	struct coop_sandbox_work *work = begin_named(exchange);
	if (work)
		coop_sandbox_ask(work, "agent_show", name_agent(work), step);
}

static void list_snapshots(struct coop_http_exchange *exchange)
{
	list_of_one(exchange, answer_no_snapshots);
}

static void list_checkpoints(struct coop_http_exchange *exchange)
{
	list_of_one(exchange, answer_no_checkpoints);
}

const struct coop_http_route coop_routes_sandboxes[] = {
	{"POST", "/v1/sandboxes", COOP_ROUTE_CONTROL, COOP_BODY_JSON, BODY_MAX, create},
	{"GET", "/v1/sandboxes", COOP_ROUTE_CONTROL, COOP_BODY_NONE, 0, list},
	{"GET", "/v1/sandboxes/{id}", COOP_ROUTE_CONTROL, COOP_BODY_NONE, 0, show},
	{"DELETE", "/v1/sandboxes/{id}", COOP_ROUTE_CONTROL, COOP_BODY_NONE, 0, remove_one},
	{"POST", "/v1/sandboxes/{id}/resume", COOP_ROUTE_CONTROL, COOP_BODY_JSON, 0, resume},
	{"POST", "/v1/sandboxes/{id}/timeout", COOP_ROUTE_CONTROL, COOP_BODY_JSON, 0, set_timeout},
	{"GET", "/v1/sandboxes/{id}/snapshots", COOP_ROUTE_CONTROL, COOP_BODY_NONE, 0,
	 list_snapshots},
	{"GET", "/v1/sandboxes/{id}/checkpoints", COOP_ROUTE_CONTROL, COOP_BODY_NONE, 0,
	 list_checkpoints},
	{"*", "/v1/sandboxes/", COOP_ROUTE_CONTROL | COOP_ROUTE_BELOW, COOP_BODY_NONE, 0,
	 coop_refuse_route},
	{0},
};
