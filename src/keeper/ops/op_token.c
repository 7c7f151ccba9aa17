#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json/jsonw.h"
#include "base/mem.h"
#include "interface/err.h"
#include "interface/schema.h"
#include "keeper/agents/change.h"
#include "keeper/agents/op_agent.h"
#include "keeper/agents/token.h"
#include "keeper/conf/conf.h"
#include "keeper/confine/ceiling.h"
#include "keeper/core/books.h"
#include "keeper/core/keeper.h"
#include "keeper/core/labels.h"
#include "keeper/link/connection.h"
#include "keeper/link/job.h"
#include "keeper/link/request.h"
#include "keeper/owner/agent.h"
#include "records/secret.h"
#include "records/store.h"

#define SECRET_BYTES 32u

/* Making one: coop_<number of its row>_<what nobody can guess>; the hash is of the latter. */
struct making {
	struct coop_change change;
	struct coop_agent *agent; /* a reference */
	struct coop_store_token row;
	char *label;
	char random[2 * SECRET_BYTES + 1];
};

/* Expired ones are dropped before a new one is refused for their sake. */
static int check_new(struct coop_change *change, struct coop_err *err)
{
	struct making *making = (struct making *)change;
	struct coop_keeper *keeper = change->job.keeper;
	int64_t limit =
		coop_op_agent_share(change->job.request, coop_conf_of(keeper)->settings.max_tokens);

	if (making->agent->removed)
		return coop_agent_none(err);
	if (coop_tokens_count(keeper) >= limit)
		coop_token_drop_expired(keeper);
	if (coop_tokens_count(keeper) < limit)
		return coop_op_agent_room(change->job.request, making->agent, true,
					  coop_conf_of(keeper)->settings.max_tokens, err);
	int r = coop_err_set(err, COOP_QUOTA, "the limit of %lld tokens is reached",
			     (long long)limit);
	coop_err_detail(err, "scope", "tokens");
	coop_err_detail_int(err, "limit", limit);
	return r;
}

static int write_new(struct coop_change *change, struct coop_store *store, struct coop_err *err)
{
	struct making *making = (struct making *)change;

	return coop_store_add_token(store, &making->row, &making->row.id, err);
}

/* Shown this once: the keeper itself keeps the hash alone. */
static int make_new(struct coop_change *change, struct coop_err *err)
{
	struct making *making = (struct making *)change;
	struct coop_keeper *keeper = change->job.keeper;
	char shown[COOP_TOKEN_MAX];
	struct coop_jsonw w;

	if (!coop_books_of(keeper)->store)
		making->row.id = ++coop_books_of(keeper)->last_row;
	if (coop_token_load(making->agent, &making->row) < 0)
		return coop_err_no_memory(err);
	struct coop_request *request = coop_job_release(&change->job);
	if (!request)
		return 0;
	(void)snprintf(shown, sizeof shown, "coop_%lld_%s", (long long)making->row.id,
		       making->random);
	coop_request_result(request, &w);
	coop_jsonw_string(&w, "token", shown);
	coop_jsonw_int(&w, "id", making->row.id);
	coop_jsonw_string(&w, "agent", making->agent->path);
	coop_jsonw_time(&w, "expires_at", making->row.expires_at);
	coop_request_end(request, &w);
	explicit_bzero(shown, sizeof shown);
	return 0;
}

static void drop_new(struct coop_change *change)
{
	struct making *making = (struct making *)change;

	coop_agent_unref(making->agent);
	free(making->label);
	explicit_bzero(making->random, sizeof making->random);
	free(making);
}

void coop_op_token_new(struct coop_request *request)
{
	struct coop_err err;
	struct coop_agent *agent = coop_op_agent_named(request, &err);
	const char *label = coop_arg_string(request->args, "label", "");
	int64_t lifetime = coop_arg_int(request->args, "expires_in_ms", 0);

	if (!agent || coop_ceiling_check_token(request->conn, agent, &err) < 0) {
		coop_request_fail(request, &err);
		return;
	}
	struct making *making = coop_mem_zalloc(sizeof *making);
	if (!making || !(making->label = coop_label_clean(label)) ||
	    coop_secret_random(SECRET_BYTES, making->random) < 0 ||
	    coop_token_hash(request->keeper, making->random, making->row.hash) < 0) {
		if (making)
			free(making->label);
		free(making);
		coop_request_no_memory(request);
		return;
	}
	making->change = (struct coop_change){.job = {.request = request},
					      .check = check_new,
					      .write = write_new,
					      .make = make_new,
					      .drop = drop_new};
	making->agent = coop_agent_ref(agent);
	making->row.agent = agent->id;
	making->row.label = making->label;
	making->row.created_at = coop_clock_wall_ms();
	if (lifetime)
		making->row.expires_at = making->row.created_at + lifetime;
	/* A token that expires makes none that lasts longer. */
	int64_t own = request->conn->expires_at;
	if (own && (!lifetime || making->row.expires_at > own))
		making->row.expires_at = own;
	coop_change_begin(request->keeper, &making->change);
}

/* Never the token itself: nobody here knows it. */
void coop_op_token_list(struct coop_request *request)
{
	struct coop_err err;
	struct coop_agent *top = coop_op_agent_named(request, &err);
	struct coop_jsonw w;

	if (!top) {
		coop_request_fail(request, &err);
		return;
	}
	coop_token_drop_expired(request->keeper);
	coop_request_result(request, &w);
	coop_jsonw_array(&w, "tokens");
	for (struct coop_agent *agent = NULL; (agent = coop_agent_next(top, agent));) {
		COOP_LIST_EACH(&agent->tokens, link)
		{
			const struct coop_token *token =
				COOP_LIST_ITEM(link, struct coop_token, in_agent);
			coop_jsonw_begin(&w, NULL);
			coop_jsonw_int(&w, "id", token->id);
			coop_jsonw_string(&w, "agent", agent->path);
			coop_jsonw_string(&w, "label", *token->label ? token->label : NULL);
			coop_jsonw_time(&w, "created_at", token->created_at);
			coop_jsonw_time(&w, "expires_at", token->expires_at);
			coop_jsonw_end(&w);
		}
	}
	coop_jsonw_array_end(&w);
	coop_request_end(request, &w);
}

struct revoking {
	struct coop_change change;
	struct coop_conn *conn; /* whose request it is; good as long as the request is there */
	int64_t id;
	bool found;
};

/* The caller's own, those below it; the operator's are all. */
static struct coop_token *revocable(const struct revoking *revoking)
{
	const struct coop_conn *conn = revoking->conn;
	struct coop_token *token = coop_token_find(conn->keeper, revoking->id);

	bool may = token && (conn->is_operator || coop_agent_sees(conn->agent, token->agent));

	return may ? token : NULL;
}

/* One that is not there, or not the caller's to revoke, is the same: not revoked. */
static int check_revoke(struct coop_change *change, struct coop_err *err)
{
	struct revoking *revoking = (struct revoking *)change;

	(void)err;
	revoking->found = revocable(revoking) != NULL;
	return 0;
}

static int write_revoke(struct coop_change *change, struct coop_store *store, struct coop_err *err)
{
	struct revoking *revoking = (struct revoking *)change;

	return revoking->found
		       ? coop_store_revoke_token(store, revoking->id, coop_clock_wall_ms(), err)
		       : 0;
}

static int make_revoke(struct coop_change *change, struct coop_err *err)
{
	struct revoking *revoking = (struct revoking *)change;
	struct coop_keeper *keeper = change->job.keeper;
	struct coop_token *token = revoking->found ? coop_token_find(keeper, revoking->id) : NULL;
	struct coop_request *request = coop_job_release(&change->job);
	struct coop_jsonw w;

	(void)err;
	if (request) {
		coop_request_result(request, &w);
		coop_jsonw_bool(&w, "revoked", revoking->found);
		coop_request_end(request, &w);
	}
	/* Its own connection may be among those that end with it: the answer goes first. */
	if (token)
		coop_token_drop(token);
	return 0;
}

static void drop_revoke(struct coop_change *change)
{
	free(change);
}

void coop_op_token_revoke(struct coop_request *request)
{
	struct revoking *revoking = coop_mem_zalloc(sizeof *revoking);

	if (!revoking) {
		coop_request_no_memory(request);
		return;
	}
	revoking->change = (struct coop_change){.job = {.request = request},
						.check = check_revoke,
						.write = write_revoke,
						.make = make_revoke,
						.drop = drop_revoke};
	revoking->conn = request->conn;
	revoking->id = coop_arg_int(request->args, "id", 0);
	coop_change_begin(request->keeper, &revoking->change);
}
