#include "doors/http/control/sandboxes_list.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "doors/http/control/sandboxes_args.h"
#include "doors/http/control/sandboxes_query.h"
#include "doors/http/control/sandboxes_view.h"
#include "doors/http/control/sandboxes_work.h"
#include "doors/http/users/user.h"

/* Whether it is a sandbox of the caller's own: an agent directly below it, made here. */
static bool is_sandbox(const struct coop_sandbox_work *work, const json_t *agent)
{
	const char *path = json_string_value(json_object_get(agent, "path")),
		   *name = json_string_value(json_object_get(agent, "name")),
		   *own = coop_user_agent(work->user);
	size_t size = strlen(own);

	return path && name && coop_sandbox_is_id(name) && !strncmp(path, own, size) &&
	       path[size] == '/' && !strcmp(path + size + 1, name);
}

static void finish(struct coop_sandbox_work *work, uint64_t next)
{
	char text[24] = "";
	json_t *value;

	(void)snprintf(text, sizeof text, "%llu", (unsigned long long)next);
	value = json_pack("{s:O, s:s?}", "sandboxes", work->list, "next_token", next ? text : NULL);
	coop_sandbox_answer_value(work->exchange, 200, value);
}

static void on_agents(struct coop_sandbox_work *work, const json_t *result,
		      const struct coop_error *error)
{
	const json_t *agents = json_object_get(result, "agents"), *agent = NULL;
	struct coop_sandbox_query *query = &work->query;
	size_t i;

	if (error) {
		coop_sandbox_refuse(work, error);
		return;
	}
	json_array_foreach((json_t *)(uintptr_t)agents, i, agent)
	{
		uint64_t id = (uint64_t)json_integer_value(json_object_get(agent, "id"));
		if (id <= query->after || !is_sandbox(work, agent) ||
		    !coop_sandbox_query_fits(query, json_object_get(agent, "metadata")))
			continue;
		if (json_array_size(work->list) == query->limit) {
			finish(work, query->after);
			return;
		}
		if (json_array_append_new(work->list, coop_sandbox_view(agent)) < 0) {
			coop_sandbox_answer_value(work->exchange, 500, NULL);
			return;
		}
		query->after = id;
	}
	if (json_is_true(json_object_get(result, "more")) && agent)
		coop_sandbox_ask(work, "agent_list",
				 json_pack("{s:O}", "after", json_object_get(agent, "path")),
				 on_agents);
	else
		finish(work, 0);
}

void coop_sandboxes_list(struct coop_http_exchange *exchange)
{
	struct coop_sandbox_query query;

	if (!coop_sandbox_query_read(exchange, COOP_QUERY_PAGE | COOP_QUERY_SELECT, &query))
		return;
	struct coop_sandbox_work *work = coop_sandbox_work_new(exchange);
	if (!work) {
		coop_sandbox_query_clear(&query);
		return;
	}
	work->query = query;
	work->list = json_array();
	if (!work->list)
		coop_sandbox_answer_value(exchange, 500, NULL);
	else
		coop_sandbox_ask(work, "agent_list", json_object(), on_agents);
}
