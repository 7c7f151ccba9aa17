/* Tools that end processes: one signal, an orderly stop, and forgetting. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "doors/tools/core/advice.h"
#include "doors/tools/core/call.h"
#include "doors/tools/core/fields.h"
#include "doors/tools/core/process_arg.h"
#include "doors/tools/core/record.h"
#include "doors/tools/core/table.h"
#include "interface/schema.h"

static const struct coop_field kill_input[] = {
	IN_PID,
	IN_SIGNAL("SIGTERM (default), SIGKILL, SIGINT, SIGHUP, SIGSTOP, SIGCONT"),
	FIELDS_END,
};
static const struct coop_field kill_output[] = {
	OUT_INT_NULL("pid"), OUT_STRING("id"),    OUT_STRING("signal"),
	OUT_BOOL("sent"),    OUT_STRING("state"), FIELDS_END,
};

/* What is carried out and refused: a failure with the usual body beside the code. */
static int refuse(struct coop_tool_call *call, const char *code, const char *message)
{
	call->failed = true;
	coop_tool_set(call, "code", json_string(code));
	coop_tool_set(call, "message", json_string(message));
	coop_tool_set(call, "advice", json_string(coop_advice_of(code)));
	return 0;
}

static int send_signal(struct coop_tool_call *call, const json_t *record)
{
	const char *id = coop_tool_record_id(record);
	const json_t *wanted = coop_arg(call->args, "signal");
	struct coop_tool_answer answer;
	int r = coop_tool_ask(call, "signal",
			      wanted ? json_pack("{s:s, s:O}", "id", id, "signal", wanted)
				     : json_pack("{s:s, s:s}", "id", id, "signal", "SIGTERM"),
			      &answer);

	if (r < 0)
		return r;
	bool sent = json_is_true(json_object_get(answer.json, "sent"));
	coop_tool_set_process(call, record);
	coop_tool_set(call, "signal", json_incref(json_object_get(answer.json, "signal_name")));
	coop_tool_set(call, "sent", json_boolean(sent));
	coop_tool_set(call, "state", json_incref(json_object_get(answer.json, "state")));
	coop_tool_answer_clear(&answer);
	return sent ? 0
		    : refuse(call, "not_running",
			     "it has ended already, so nothing was sent; wait_for_process tells "
			     "how it "
			     "ended");
}

static int run_kill(struct coop_tool_call *call)
{
	json_t *record;
	int r = coop_tool_process(call, "pid", &record);

	if (r == 0)
		r = send_signal(call, record);
	/* Nothing wrong with the call: there is no such process, or it is another's. */
	if (r < 0 && strcmp(call->error.code, "invalid_input") != 0 && r != -ECANCELED &&
	    r != -ENOMEM)
		call->failed = true;
	json_decref(record);
	return r;
}

const struct coop_tool coop_tool_kill_process = {
	.name = "kill_process",
	.title = "Send a signal",
	.description = "Sends one signal to the process's group; success means sent. To end it "
		       "for sure use stop_process.",
	.kind = COOP_TOOL_END,
	.sets = COOP_TOOLS_DEFAULT,
	.input = kill_input,
	.output = kill_output,
	.run = run_kill,
};

static const struct coop_field stop_input[] = {
	IN_PID,
	ARG_GRACE("patience after SIGTERM (5000)"),
	FIELDS_END,
};
static const struct coop_field stop_output[] = {
	OUT_INT_NULL("pid"),       OUT_STRING("id"),
	OUT_STRING("state"),       OUT_INT_NULL("exit_code"),
	OUT_STRING_NULL("signal"), OUT_STRING_NULL("end_cause"),
	OUT_INT("survivors"),      FIELDS_END,
};

static int run_stop(struct coop_tool_call *call)
{
	struct coop_tool_answer answer;
	char *id = NULL;
	int r = coop_tool_id(call, "pid", &id);

	if (r == 0)
		r = coop_tool_ask(call, "stop",
				  json_pack("{s:s, s:I}", "id", id, "grace_ms",
					    (json_int_t)coop_arg_int(call->args, "grace_ms", 5000)),
				  &answer);
	free(id);
	if (r < 0)
		return r;
	const json_t *record = json_object_get(answer.json, "process");
	coop_tool_set_process(call, record);
	coop_tool_set(call, "state", json_incref(json_object_get(record, "state")));
	coop_tool_set_end(call, record, 0);
	coop_tool_set(call, "survivors", json_incref(json_object_get(answer.json, "survivors")));
	call->failed = !json_is_true(json_object_get(answer.json, "success"));
	coop_tool_answer_clear(&answer);
	return 0;
}

const struct coop_tool coop_tool_stop_process = {
	.name = "stop_process",
	.title = "Stop a process",
	.description = "Ends a process with everything it started: SIGTERM, grace, SIGKILL. "
		       "survivors 0 proves that nothing is left. Its output stays readable.",
	.kind = COOP_TOOL_END,
	.sets = COOP_TOOLS_DEFAULT,
	.input = stop_input,
	.output = stop_output,
	.run = run_stop,
};

static const struct coop_field release_input[] = {IN_PID, FIELDS_END};
static const struct coop_field release_output[] = {
	OUT_INT_NULL("pid"),
	OUT_STRING_NULL("id"),
	OUT_BOOL("released"),
	FIELDS_END,
};

/* One that nobody knows is released: false, and no error. */
static int run_release(struct coop_tool_call *call)
{
	struct coop_tool_answer answer;
	json_t *record;
	int r = coop_tool_process(call, "pid", &record);

	if (r < 0 && strcmp(call->error.code, "no_such_process") == 0) {
		coop_tool_set(call, "pid", json_null());
		coop_tool_set(call, "id", json_null());
		coop_tool_set(call, "released", json_false());
		r = 0;
	} else if (r == 0) {
		coop_tool_set_process(call, record);
		r = coop_tool_ask(call, "release",
				  json_pack("{s:O}", "id", json_object_get(record, "id")), &answer);
		if (r == 0) {
			coop_tool_set(call, "released",
				      json_incref(json_object_get(answer.json, "released")));
			coop_tool_answer_clear(&answer);
		}
	}
	json_decref(record);
	return r;
}

const struct coop_tool coop_tool_release_process = {
	.name = "release_process",
	.title = "Forget a process",
	.description = "Frees a process and its output; kills it first if it runs.",
	.kind = COOP_TOOL_END,
	.sets = COOP_TOOLS_DEFAULT,
	.input = release_input,
	.output = release_output,
	.run = run_release,
};
