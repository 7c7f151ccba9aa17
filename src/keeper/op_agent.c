#include "keeper/op_agent.h"

#include <string.h>

#include "base/schema.h"
#include "keeper/agent.h"
#include "keeper/connection.h"
#include "keeper/keeper.h"
#include "keeper/request.h"

#define ANSWER_MAX (6u << 20)

static int no_principal(struct coop_err *err)
{
	return coop_err_field(err, COOP_INVALID_INPUT, "principal", "there is no such principal");
}

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

int64_t coop_op_agent_share(const struct coop_request *request, int64_t limit)
{
	return request->conn->is_operator ? limit : limit - (limit + 7) / 8;
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
		more = coop_buf_size(w.out) - request->mark > ANSWER_MAX;
		if (!more)
			coop_agent_write(agent, &w, NULL);
	}
	coop_jsonw_array_end(&w);
	coop_jsonw_bool(&w, "more", more);
	coop_request_end(request, &w);
}
