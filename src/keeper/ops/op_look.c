#include "keeper/ops/op_look.h"

#include <string.h>

#include "base/json/jsonw.h"
#include "interface/choices.h"
#include "interface/err.h"
#include "interface/schema.h"
#include "keeper/conf/shells.h"
#include "keeper/core/keeper.h"
#include "keeper/link/connection.h"
#include "keeper/link/request.h"
#include "keeper/ops/ops.h"
#include "keeper/owner/agent.h"
#include "keeper/process/deadlines.h"
#include "keeper/process/eviction.h"
#include "keeper/process/lookup.h"
#include "keeper/process/phase.h"
#include "keeper/process/process.h"
#include "keeper/store/record.h"
#include "keeper/tree/orphans.h"

/* Live, or ended with descendants that are. */
static bool is_present(struct coop_process *process)
{
	return coop_process_live(process) ||
	       (!coop_process_receipt(process) &&
		coop_orphans_left(process->keeper, process, COOP_QUICK));
}

/* What a list is asked for, taken out of its arguments once: there may be thousands of records to
 * look at. */
struct filter {
	const struct coop_agent *viewer;
	const char *tag, *label, *agent, *session;
	int state;
	bool finished;
};

/* Names are the request's, which outlives the answer. */
static struct filter filter_of(const struct coop_agent *viewer, const json_t *args)
{
	return (struct filter){
		.viewer = viewer,
		.tag = coop_arg_string(args, "tag", NULL),
		.label = coop_arg_string(args, "label", NULL),
		.agent = coop_arg_string(args, "agent", NULL),
		.session = coop_arg_string(args, "session", NULL),
		.state = coop_arg_enum(args, "state", coop_choices_state, -1),
		.finished = coop_arg_bool(args, "include_finished", false),
	};
}

/* What most records fail at comes first. */
static bool matches(struct coop_process *process, const struct filter *filter)
{
	if (filter->state >= 0 && (int)coop_process_state(process) != filter->state)
		return false;
	if (filter->state < 0 && !filter->finished && !is_present(process))
		return false;
	if (!coop_agent_sees(filter->viewer, process->agent) ||
	    !coop_agent_matches(filter->viewer, process->agent, filter->agent) ||
	    !coop_record_in_session(process, filter->session))
		return false;
	if (filter->tag && (!process->labels.tag || strcmp(process->labels.tag, filter->tag) != 0))
		return false;
	return !filter->label || strstr(process->labels.label, filter->label);
}

/* In the order of starts, which `after` can go on from whatever has ended since. */
void coop_op_list(struct coop_request *request)
{
	struct coop_keeper *keeper = request->keeper;
	const json_t *args = request->args;
	const struct coop_agent *viewer = request->conn->agent;
	const char *after = coop_arg_string(args, "after", NULL);
	const struct filter filter = filter_of(viewer, args);
	int64_t left = coop_arg_int(args, "limit", 1000);
	enum coop_record_view view =
		coop_arg_bool(args, "brief", false) ? COOP_RECORD_BRIEF : COOP_RECORD_FULL;
	struct coop_process *start = NULL;
	bool more = false;
	struct coop_err err;
	struct coop_jsonw w;

	if (after && !(start = coop_lookup(viewer, after, &err))) {
		coop_request_fail(request, &err);
		return;
	}
	coop_eviction_trim(keeper);
	coop_request_result(request, &w);
	coop_jsonw_array(&w, "processes");
	COOP_LIST_EACH(&viewer->principal->processes, link)
	{
		struct coop_process *process =
			COOP_LIST_ITEM(link, struct coop_process, in.principal);
		if ((start && process->n <= start->n) || !matches(process, &filter))
			continue;
		more = left-- == 0 || coop_request_is_full(request);
		if (more)
			break;
		coop_record_show(process, view, request->conn, &w, NULL);
	}
	coop_jsonw_array_end(&w);
	coop_jsonw_bool(&w, "more", more);
	coop_request_end(request, &w);
}

/* Of several those that are not there are left out, so that one that has gone does not spoil the
 * answer about the others. */
void coop_op_status(struct coop_request *request)
{
	const json_t *ids = coop_arg(request->args, "ids");
	struct coop_err err;
	struct coop_jsonw w;

	if (!ids == !coop_arg(request->args, "id")) {
		(void)coop_err_field(&err, COOP_INVALID_INPUT, "id", "give either id or ids");
		coop_request_fail(request, &err);
		return;
	}
	if (!ids) {
		struct coop_process *process = coop_lookup_named(request);
		if (!process)
			return;
		coop_request_result(request, &w);
		coop_record_show(process, COOP_RECORD_FULL, request->conn, &w, "process");
		coop_request_end(request, &w);
		return;
	}
	coop_request_result(request, &w);
	coop_jsonw_array(&w, "processes");
	for (size_t i = 0; i < json_array_size(ids); i++) {
		struct coop_process *process = coop_lookup(
			request->conn->agent, json_string_value(json_array_get(ids, i)), &err);
		if (process) {
			if (process->agent == request->conn->agent)
				coop_deadlines_touch(process);
			coop_record_show(process, COOP_RECORD_FULL, request->conn, &w, NULL);
		}
	}
	coop_jsonw_array_end(&w);
	coop_request_end(request, &w);
}

void coop_op_list_shells(struct coop_request *request)
{
	const struct coop_shell *shell, *standard = coop_shells_find(NULL);
	struct coop_jsonw w;

	coop_request_result(request, &w);
	coop_jsonw_array(&w, "shells");
	for (size_t i = 0; (shell = coop_shells_row(i)); i++) {
		coop_jsonw_begin(&w, NULL);
		coop_jsonw_string(&w, "id", shell->id);
		coop_jsonw_string(&w, "label", shell->label);
		coop_jsonw_string(&w, "path", shell->path);
		coop_jsonw_bool(&w, "available", coop_shells_available(shell));
		coop_jsonw_bool(&w, "supports_login", shell->login);
		coop_jsonw_bool(&w, "supports_interactive", shell->interactive);
		coop_jsonw_raw(&w, "default_args", "[\"-c\"]");
		coop_jsonw_raw(&w, "login_args", "[\"-l\",\"-c\"]");
		coop_jsonw_end(&w);
	}
	coop_jsonw_array_end(&w);
	coop_jsonw_string(&w, "default", standard ? standard->id : NULL);
	coop_request_end(request, &w);
}

/* Printed from the tables that validation uses, so it cannot say anything else. */
void coop_op_describe(struct coop_request *request)
{
	const struct coop_op *op;
	struct coop_jsonw w;

	coop_request_result(request, &w);
	coop_jsonw_array(&w, "operations");
	for (size_t i = 0; (op = coop_ops_row(i)); i++) {
		coop_jsonw_begin(&w, NULL);
		coop_jsonw_string(&w, "name", op->row->name);
		coop_jsonw_string(&w, "summary", op->row->summary);
		coop_jsonw_string(&w, "right", coop_right_name(op->row->right));
		coop_jsonw_bool(&w, "waits", op->row->waits);
		coop_jsonw_uint(&w, "data", op->row->data_max);
		coop_schema_write(&w, "args", op->row->args);
		coop_schema_write(&w, "result", op->row->result);
		coop_jsonw_end(&w);
	}
	coop_jsonw_array_end(&w);
	coop_request_end(request, &w);
}
