#include "keeper/ops/op_cancel.h"

#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/jsonw.h"
#include "interface/err.h"
#include "interface/schema.h"
#include "keeper/link/connection.h"
#include "keeper/link/request.h"
#include "keeper/owner/agent.h"
#include "keeper/process/lookup.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/process/registry.h"
#include "keeper/tree/party.h"

#define GRACE_MS 2000

/* Only those that it has begun to end: who had ended before is in nobody's list. */
static void answer_cancelled(struct coop_party *party)
{
	struct coop_jsonw w;

	if (!party->request)
		return;
	coop_request_result(party->request, &w);
	coop_jsonw_array(&w, "cancelled");
	for (size_t i = 0; i < json_array_size(party->ids); i++)
		coop_jsonw_string(&w, NULL, json_string_value(json_array_get(party->ids, i)));
	coop_jsonw_array_end(&w);
	coop_jsonw_uint(&w, "survivors", party->survivors);
	coop_request_end(party->request, &w);
}

static bool carries(const struct coop_process *process, const json_t *call_ids)
{
	for (size_t i = 0; process->labels.call_id && i < json_array_size(call_ids); i++) {
		if (!strcmp(json_string_value(json_array_get(call_ids, i)),
			    process->labels.call_id))
			return true;
	}
	return false;
}

/* The ids of all that are named, as members of an object; NULL without memory. */
static json_t *resolve(const struct coop_agent *agent, const json_t *ids)
{
	json_t *named = json_object();

	for (size_t i = 0; named && i < json_array_size(ids); i++) {
		struct coop_err err;
		const struct coop_process *process =
			coop_lookup(agent, json_string_value(json_array_get(ids, i)), &err);
		if (process && json_object_set_new(named, process->id, json_true()) < 0) {
			json_decref(named);
			return NULL;
		}
	}
	return named;
}

/* Each once, however often it is meant. */
static void end_all(struct coop_party *party, struct coop_agent *agent, const json_t *call_ids,
		    const json_t *named)
{
	struct coop_kill_order order = {
		.cause = COOP_CAUSE_CANCELLED,
		.evidence = {.request = "cancel", .agent = agent->path},
		.grace_ms = GRACE_MS,
		.ask = SIGINT,
	};

	COOP_LIST_EACH(coop_registry_all(agent->keeper), link)
	{
		struct coop_process *process = COOP_LIST_ITEM(link, struct coop_process, in.all);
		if (process->agent == agent && coop_process_live(process) &&
		    (carries(process, call_ids) || json_object_get(named, process->id)))
			coop_party_add(party, process, &order);
	}
	coop_party_wait(party);
}

void coop_op_cancel(struct coop_request *request)
{
	struct coop_agent *agent = request->conn->agent;
	const json_t *call_ids = coop_arg(request->args, "call_ids");
	const json_t *ids = coop_arg(request->args, "ids");
	struct coop_err err;

	if (!call_ids && !ids) {
		(void)coop_err_field(&err, COOP_INVALID_INPUT, "call_ids",
				     "give call_ids, ids, or both");
		coop_request_fail(request, &err);
		return;
	}
	json_t *named = resolve(agent, ids);
	struct coop_party *party = named ? coop_party_new(request, answer_cancelled) : NULL;
	if (!party || !(party->ids = json_array())) {
		json_decref(named);
		request->on_drop = NULL;
		free(party);
		coop_request_no_memory(request);
		return;
	}
	/* The answer may come at once, and takes the arguments with it. */
	end_all(party, agent, call_ids, named);
	json_decref(named);
}
