#include "keeper/agents/op_agent.h"

#include <string.h>

#include "base/json/jsonw.h"
#include "interface/schema.h"
#include "keeper/link/connection.h"
#include "keeper/link/request.h"
#include "keeper/owner/agent.h"

#define SHARE_MIN 16

static int no_principal(struct coop_err *err)
{
	return coop_err_field(err, COOP_INVALID_INPUT, "principal", "there is no such principal");
}

/* The operator alone learns whether there is such a principal. */
struct coop_agent *coop_op_agent_base(const struct coop_request *request, struct coop_err *err)
{
	const struct coop_conn *conn = request->conn;
	const char *name = coop_arg_string(request->args, "principal", NULL);
	struct coop_principal *principal;

	if (!name || !strcmp(name, conn->agent->principal->name))
		return conn->agent;
	principal = conn->is_operator ? coop_principal_find(request->keeper, name) : NULL;
	if (!principal) {
		(void)no_principal(err);
		return NULL;
	}
	return principal->first;
}

struct coop_agent *coop_op_agent_named(struct coop_request *request, struct coop_err *err)
{
	struct coop_agent *base = coop_op_agent_base(request, err);
	const char *text = coop_arg_string(request->args, "agent", NULL);

	return base && text ? coop_agent_find(base, text, err) : base;
}

/* An agent changes what is below it, never itself; the operator also other principals' first. */
static int may_change(const struct coop_request *request, const struct coop_agent *agent,
		      struct coop_err *err)
{
	if (agent != request->conn->agent)
		return 0;
	return coop_err_set(err, COOP_PERMISSION_DENIED,
			    request->conn->is_operator
				    ? "the settings of main are in coop.conf, and it stays"
				    : "an agent cannot change or remove itself");
}

struct coop_agent *coop_op_agent_changeable(struct coop_request *request)
{
	struct coop_err err;
	struct coop_agent *agent = coop_op_agent_named(request, &err);

	if (agent && may_change(request, agent, &err) == 0)
		return agent;
	coop_request_fail(request, &err);
	return NULL;
}

/* An eighth stays the operator's, who must be able to mend what agents have used up. */
int64_t coop_op_agent_share(const struct coop_request *request, int64_t limit)
{
	return request->conn->is_operator ? limit : limit - (limit + 7) / 8;
}

int coop_op_agent_room(const struct coop_request *request, struct coop_agent *top, bool tokens,
		       int64_t limit, struct coop_err *err)
{
	/* Below the principal's first each agent, with all below it, has an eighth: one sandbox
	 * must not use up what all the others need. */
	int64_t share = coop_op_agent_share(request, limit) / 8;

	if (share < SHARE_MIN)
		share = SHARE_MIN;
	for (; top && top->parent; top = top->parent) {
		int64_t used = 0;
		for (struct coop_agent *agent = NULL; (agent = coop_agent_next(top, agent));)
			used += tokens ? (int64_t)agent->token_count : 1;
		if (used < share || request->conn->is_operator)
			continue;
		const char *what = tokens ? "tokens" : "agents";
		int r = coop_err_set(err, COOP_QUOTA, "%.128s has, with all below it, its %lld %s",
				     top->name, (long long)share, what);
		coop_err_detail(err, "scope", what);
		coop_err_detail_int(err, "limit", share);
		return r;
	}
	return 0;
}

void coop_op_agent_answer(struct coop_request *request, const struct coop_agent *agent)
{
	struct coop_jsonw w;

	coop_request_result(request, &w);
	coop_agent_write(agent, &w, "agent");
	coop_request_end(request, &w);
}

void coop_op_agent_show(struct coop_request *request)
{
	struct coop_err err;
	struct coop_agent *agent = coop_op_agent_named(request, &err);

	if (agent)
		coop_op_agent_answer(request, agent);
	else
		coop_request_fail(request, &err);
}

/* In the order of a walk, which `after` can go on from: nothing is kept between two answers. */
void coop_op_agent_list(struct coop_request *request)
{
	const char *after = coop_arg_string(request->args, "after", NULL);
	struct coop_err err;
	struct coop_agent *base = coop_op_agent_base(request, &err),
			  *agent = base && after ? coop_agent_find(base, after, &err) : NULL;
	bool more = false;
	struct coop_jsonw w;

	if (!base || (after && !agent)) {
		coop_request_fail(request, &err);
		return;
	}
	coop_request_result(request, &w);
	coop_jsonw_array(&w, "agents");
	while (!more && (agent = coop_agent_next(base, agent))) {
		more = coop_request_is_full(request);
		if (!more)
			coop_agent_write(agent, &w, NULL);
	}
	coop_jsonw_array_end(&w);
	coop_jsonw_bool(&w, "more", more);
	coop_request_end(request, &w);
}
