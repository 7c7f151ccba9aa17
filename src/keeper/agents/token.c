#include "keeper/agents/token.h"
#include "keeper/owner/agents.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json/jsonw.h"
#include "base/map.h"
#include "base/mem.h"
#include "interface/schema.h"
#include "keeper/core/books.h"
#include "keeper/core/keeper.h"
#include "keeper/link/admission.h"
#include "keeper/link/connection.h"
#include "keeper/link/connections.h"
#include "keeper/link/request.h"
#include "keeper/owner/agent.h"

#define PURPOSE "token"

int64_t coop_tokens_count(const struct coop_keeper *keeper)
{
	return (int64_t)coop_agents_of(keeper)->tokens.used;
}

struct coop_token *coop_token_find(const struct coop_keeper *keeper, int64_t id)
{
	return coop_map_get(&coop_agents_of(keeper)->tokens, (uint64_t)id);
}

int coop_token_load(struct coop_agent *agent, const struct coop_store_token *row)
{
	struct coop_keeper *keeper = agent->keeper;
	struct coop_token *token = coop_mem_zalloc(sizeof *token);

	if (!token || !(token->label = coop_mem_strdup(row->label)) ||
	    coop_map_put(&coop_agents_of(keeper)->tokens, (uint64_t)row->id, token) < 0) {
		if (token)
			free(token->label);
		free(token);
		return -ENOMEM;
	}
	token->agent = agent;
	token->id = row->id;
	memcpy(token->hash, row->hash, sizeof token->hash);
	token->created_at = row->created_at;
	token->expires_at = row->expires_at;
	coop_list_add(&agent->tokens, &token->in_agent);
	agent->token_count++;
	return 0;
}

/* Whoever logged in with it acts by it until the end: revoking would else take effect at the next
 * login alone. */
static void end_connections(struct coop_keeper *keeper, int64_t token, const char *why)
{
	COOP_LIST_EACH(coop_connections_all(keeper), link)
	{
		struct coop_conn *conn = COOP_LIST_ITEM(link, struct coop_conn, in_keeper);
		if (conn->token == token)
			coop_conn_retire(conn, why, "token_revoked");
	}
}

static void forget(struct coop_token *token)
{
	(void)coop_map_remove(&coop_agents_of(token->agent->keeper)->tokens, (uint64_t)token->id);
	coop_list_remove(&token->in_agent);
	token->agent->token_count--;
	free(token->label);
	free(token);
}

void coop_token_drop(struct coop_token *token)
{
	end_connections(token->agent->keeper, token->id, "the token is not valid any more");
	forget(token);
}

void coop_token_drop_all(struct coop_agent *agent)
{
	while (!coop_list_empty(&agent->tokens))
		coop_token_drop(COOP_LIST_ITEM(agent->tokens.next, struct coop_token, in_agent));
}

/* Keyed with the keeper's own key, so that a copy of the database alone is of no use to somebody
 * who guesses. */
int coop_token_hash(const struct coop_keeper *keeper, const char *text, uint8_t ret[COOP_HASH_SIZE])
{
	return coop_secret_hash(coop_books_of(keeper)->secret, PURPOSE, text, strlen(text), ret);
}

static void drop_expired(struct coop_agent *agent, int64_t now)
{
	COOP_LIST_EACH(&agent->tokens, link)
	{
		struct coop_token *token = COOP_LIST_ITEM(link, struct coop_token, in_agent);
		/* Connections that use it end by their own clocks, and not in the middle of a
		 * request of theirs. */
		if (token->expires_at && token->expires_at <= now)
			forget(token);
	}
}

void coop_token_drop_expired(struct coop_keeper *keeper)
{
	int64_t now = coop_clock_wall_ms();

	COOP_LIST_EACH(coop_agents_principals(keeper), link)
	{
		struct coop_agent *first =
			COOP_LIST_ITEM(link, struct coop_principal, in_keeper)->first;
		for (struct coop_agent *agent = NULL;
		     first && (agent = coop_agent_next(first, agent));)
			drop_expired(agent, now);
	}
}

/* The number in coop_<id>_<secret>, and where the secret begins; 0 if it does not look like one. */
static uint64_t token_id(const char *text, const char **ret_secret)
{
	char *end;

	if (strncmp(text, "coop_", 5) != 0 || text[5] < '1' || text[5] > '9')
		return 0;
	errno = 0;
	uint64_t id = strtoull(text + 5, &end, 10);
	if (errno || *end != '_' || id > INT64_MAX)
		return 0;
	*ret_secret = end + 1;
	return id;
}

/* An unknown one takes as long as a wrong one. */
static const struct coop_token *check_token(const struct coop_keeper *keeper, const char *text)
{
	const char *secret = text;
	uint64_t id = token_id(text, &secret);
	const struct coop_token *token =
		id ? coop_map_get(&coop_agents_of(keeper)->tokens, id) : NULL;
	uint8_t hash[COOP_HASH_SIZE], nothing[COOP_HASH_SIZE] = {0};

	if (coop_token_hash(keeper, secret, hash) < 0)
		return NULL;
	bool same = coop_hash_equal(hash, token ? token->hash : nothing);
	bool expired = token && token->expires_at && token->expires_at <= coop_clock_wall_ms();
	return token && same && !expired ? token : NULL;
}

/* Whatever else it asked for was asked by somebody: that ends with it. */
static void become_nobody(struct coop_conn *conn)
{
	(void)coop_conn_become(conn, NULL, 0, 0);
	if (conn->request_count > 1)
		coop_conn_fatal(conn, "permission_denied", "the login is not valid");
}

/* Once with a token, and after that, or without one, once by an agent's name: that can only take
 * rights away. Not once there is a ceiling, which was made for whom it acts as. */
static bool has_logged_in(const struct coop_conn *conn, const json_t *args)
{
	return conn->narrowed || conn->ceiling || (conn->token && !coop_arg(args, "agent"));
}

void coop_op_login_invalid(struct coop_request *request, const struct coop_err *err)
{
	struct coop_conn *conn = request->conn;

	(void)err;
	if (!has_logged_in(conn, request->args) && !conn->used)
		become_nobody(conn);
}

static void answer_login(struct coop_request *request, const struct coop_agent *agent)
{
	struct coop_jsonw w;

	coop_request_result(request, &w);
	coop_jsonw_string(&w, "principal", agent->principal->name);
	coop_jsonw_string(&w, "agent", agent->path);
	coop_jsonw_bool(&w, "operator", false);
	coop_request_end(request, &w);
}

/* A failed one leaves the connection as nobody's, with what it was before gone. */
static void login_with_token(struct coop_request *request, const char *text)
{
	const struct coop_token *token = check_token(request->keeper, text);
	struct coop_err err = {0};

	if (!token)
		(void)coop_err_set(&err, COOP_PERMISSION_DENIED, "the token is not valid");
	else if (coop_admission_login(request->conn, token->agent, &err) < 0)
		token = NULL;
	if (!token) {
		(void)coop_conn_become(request->conn, NULL, 0, 0);
		coop_request_fail(request, &err);
	} else if (coop_conn_become(request->conn, token->agent, token->id, token->expires_at) <
		   0) {
		coop_request_no_memory(request);
	} else {
		answer_login(request, token->agent);
	}
}

static void login_as(struct coop_request *request, const char *path)
{
	struct coop_conn *conn = request->conn;
	struct coop_err err;
	struct coop_agent *agent = NULL;

	if (conn->agent)
		agent = coop_agent_find(conn->agent, path, &err);
	else
		(void)coop_err_set(&err, COOP_PERMISSION_DENIED,
				   "this connection acts as no agent: log in with a token first");
	if (!agent) {
		/* Who meant to have fewer rights must not go on with more. */
		become_nobody(conn);
		coop_request_fail(request, &err);
		return;
	}
	coop_conn_narrow(conn, agent);
	answer_login(request, agent);
}

void coop_op_login(struct coop_request *request)
{
	struct coop_conn *conn = request->conn;
	const char *token = coop_arg_string(request->args, "token", NULL);
	const char *agent = coop_arg_string(request->args, "agent", NULL);
	struct coop_err err = {0};

	if (!token == !agent) {
		(void)coop_err_field(&err, COOP_INVALID_INPUT, "token",
				     "give either token or agent");
		coop_op_login_invalid(request, &err);
		coop_request_fail(request, &err);
	} else if (has_logged_in(conn, request->args) || conn->request_count > 1 ||
		   (conn->used && conn->agent)) {
		(void)coop_err_field(&err, COOP_INVALID_INPUT, "op",
				     "a connection logs in once, before it does anything but look");
		coop_request_fail(request, &err);
	} else if (token) {
		login_with_token(request, token);
	} else {
		login_as(request, agent);
	}
}
