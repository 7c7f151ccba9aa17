/* wait_any: several processes and conditions, and which of them held first. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "doors/tools/core/call.h"
#include "doors/tools/core/fields.h"
#include "doors/tools/core/process_arg.h"
#include "doors/tools/core/record.h"
#include "doors/tools/core/table.h"
#include "doors/tools/native/condition.h"
#include "interface/choices.h"
#include "interface/schema.h"

#define CONDITIONS_MAX 32
/* All that is kept of a stream has come by then. */
#define SETTLE_MS 10000

static const struct coop_field condition_fields[] = {
	IN_PID,
	IN_BOOL("exit", "true: it ends"),
	IN_STRING("output", 4096, "this text is printed"),
	IN_BOOL("regex", "output is a regex"),
	IN_ENUM("stream", coop_choices_stream, "searched (stdout)"),
	IN_INT("from_offset", 0, COOP_JSON_INT_MAX, "search from here (0)"),
	IN_INT("silent_ms", 1, TOOL_MS_MAX, "no output for so long, from now"),
	IN_INT("bytes", 1, COOP_JSON_INT_MAX, "so much was printed"),
	IN_INT("port", 1, 65535, "it listens there"),
	FIELDS_END,
};
static const struct coop_field input[] = {
	{.name = "conditions",
	 .type = COOP_FIELD_OBJECTS,
	 .required = true,
	 .max = CONDITIONS_MAX,
	 .fields = condition_fields,
	 .doc = "each: pid and one of exit, output, silent_ms, bytes, port"},
	ARG_TIMEOUT("(30000)"),
	FIELDS_END,
};
static const struct coop_field output[] = {
	OUT_INT_NULL("index"),    OUT_INT_NULL("pid"),
	OUT_STRING_NULL("id"),    OUT_STRING_NULL("condition"),
	OUT_STRING_NULL("state"), OUT_INT_NULL("next_offset"),
	OUT_BOOL("timed_out"),    FIELDS_END,
};

struct waiting {
	struct coop_tool_call *call;
	struct coop_condition conditions[CONDITIONS_MAX];
	size_t count;
	bool elsewhere; /* stdout was searched, and there is something on stderr */
};

static int check(struct coop_tool_call *call)
{
	const json_t *list = coop_arg(call->args, "conditions"), *item;
	size_t index;

	if (json_array_size(list) == 0 || json_array_size(list) > CONDITIONS_MAX)
		return coop_tool_fail(call, "invalid_input", "conditions",
				      "conditions must have 1 to %d elements, like {\"pid\": 4711, "
				      "\"port\": 8080}",
				      CONDITIONS_MAX);
	int r = coop_tool_check_list(call, "conditions", condition_fields);
	if (r < 0)
		return r;
	json_array_foreach(list, index, item)
	{
		if (coop_condition_kind(item) < 0)
			return coop_tool_fail(
				call, "invalid_input", "conditions",
				"conditions[%zu] must have exactly one of exit, output, "
				"silent_ms, bytes, port",
				index);
	}
	return 0;
}

/* The first in order that holds; *ret_dead: none can hold any more. */
static int look(struct waiting *waiting, bool *ret_dead)
{
	*ret_dead = true;
	for (size_t i = 0; i < waiting->count; i++) {
		if (waiting->conditions[i].held)
			return (int)i;
		*ret_dead = *ret_dead && waiting->conditions[i].dead;
	}
	return -1;
}

/* When something is to be looked at anew. */
static int64_t next_look(const struct waiting *waiting, int64_t until)
{
	for (size_t i = 0; i < waiting->count; i++) {
		int64_t due = coop_condition_due(&waiting->conditions[i]);
		if (due >= 0 && (until < 0 || due < until))
			until = due;
	}
	return until;
}

/* As it is now, or was when it was last seen. */
static json_t *record_of(struct coop_tool_call *call, const struct coop_condition *one)
{
	json_t *record = NULL;

	return coop_tool_record(call, one->id, &record) < 0 ? json_incref(one->record) : record;
}

static bool is_first_of_its_process(const struct waiting *waiting, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (strcmp(waiting->conditions[i].id, waiting->conditions[index].id) == 0)
			return false;
	return true;
}

static void look_elsewhere(struct waiting *waiting, const char *id, const json_t *record)
{
	const json_t *other = json_object_get(json_object_get(record, "streams"), "stderr");

	for (size_t i = 0; i < waiting->count; i++) {
		const struct coop_condition *one = &waiting->conditions[i];
		if (one->kind == COOP_CONDITION_OUTPUT && strcmp(one->stream, "stdout") == 0 &&
		    strcmp(one->id, id) == 0 && json_integer_value(json_object_get(other, "end")))
			waiting->elsewhere = true;
	}
}

/* What to do where nothing held. */
static const char *next_step(const struct waiting *waiting, bool dead)
{
	if (dead && waiting->elsewhere)
		return "None can hold any more: the processes have ended. wait_for_process tells "
		       "how; read_process_output with stream \"stderr\" may tell why.";
	if (dead)
		return "None can hold any more: the processes have ended. wait_for_process tells "
		       "how, read_process_output why.";
	if (waiting->elsewhere)
		return "Nothing yet on stdout, but there is output on stderr: stream \"stderr\" "
		       "searches that. Call again to wait further.";
	return "Nothing yet; all of them go on. Call again to wait further.";
}

/* How all of them are: what follows need not be asked for. */
static void set_states(struct waiting *waiting)
{
	struct coop_tool_call *call = waiting->call;
	json_t *rows = json_array();

	for (size_t i = 0; i < waiting->count; i++) {
		const struct coop_condition *one = &waiting->conditions[i];
		if (!is_first_of_its_process(waiting, i))
			continue;
		json_t *record = record_of(call, one);
		look_elsewhere(waiting, one->id, record);
		(void)json_array_append_new(
			rows,
			json_pack("{s:O?, s:s, s:O?, s:o}", "pid", json_object_get(record, "pid"),
				  "id", one->id, "state", json_object_get(record, "state"),
				  "next_offset", coop_condition_offset(one, record)));
		json_decref(record);
	}
	if (json_array_size(rows) == 1) {
		(void)json_object_update(call->result, json_array_get(rows, 0));
		json_decref(rows);
	} else {
		coop_tool_set(call, "processes", rows);
	}
}

static int answer(struct waiting *waiting, int index, bool dead)
{
	struct coop_tool_call *call = waiting->call;
	struct coop_condition *one = index >= 0 ? &waiting->conditions[index] : NULL;
	json_t *record = one ? record_of(call, one) : NULL;

	coop_tool_set(call, "index", one ? json_integer(index) : json_null());
	if (one) {
		coop_tool_set_process(call, record);
		coop_tool_set(call, "condition", json_string(coop_condition_name(one->kind)));
		coop_tool_set(call, "state", json_incref(json_object_get(record, "state")));
		coop_condition_result(call, one, record);
	}
	coop_tool_set(call, "timed_out", json_boolean(!one && !dead));
	if (!one) {
		set_states(waiting);
		coop_tool_set(call, "hint", json_string(next_step(waiting, dead)));
	}
	call->failed = !one;
	json_decref(record);
	return 0;
}

static int wait_for(struct waiting *waiting)
{
	struct coop_tool_call *call = waiting->call;
	int64_t until = coop_tool_until(call, coop_arg_int(call->args, "timeout_ms", 30000));

	for (;;) {
		bool dead, late = until >= 0 && coop_tool_now() >= until;
		for (size_t i = 0; i < waiting->count; i++)
			coop_condition_look(&waiting->conditions[i], late);
		int index = look(waiting, &dead);
		if (index >= 0 || dead)
			return answer(waiting, index, dead);
		for (size_t i = 0; i < waiting->count; i++)
			if (waiting->conditions[i].status < 0)
				return coop_condition_fail(call, &waiting->conditions[i], i);
		if (late)
			return answer(waiting, -1, false);
		int r = coop_tool_pause(call, next_look(waiting, until));
		if (r == -ECANCELED)
			return r;
	}
}

/* With a bound of 0 what holds already must still be seen: those answers are waited for. */
static int settle(struct waiting *waiting)
{
	int64_t until = coop_tool_until(waiting->call, SETTLE_MS);
	int r = 0;

	for (;;) {
		bool all = true;
		for (size_t i = 0; i < waiting->count; i++) {
			struct coop_condition *one = &waiting->conditions[i];
			coop_condition_look(one, false);
			all = all && (one->looked || one->held || one->dead || one->status < 0);
		}
		if (all || r == -ETIME)
			return 0;
		r = coop_tool_pause(waiting->call, until);
		if (r == -ECANCELED)
			return r;
	}
}

static int run(struct coop_tool_call *call)
{
	const json_t *list = coop_arg(call->args, "conditions"), *item;
	struct waiting *waiting = NULL;
	size_t index;
	int r = check(call);

	if (r < 0)
		return r;
	waiting = coop_mem_zalloc(sizeof *waiting);
	if (!waiting)
		return coop_tool_no_memory(call);
	waiting->call = call;
	json_array_foreach(list, index, item)
	{
		r = coop_condition_begin(call, &waiting->conditions[index], item);
		waiting->count = index + 1;
		if (r < 0)
			break;
	}
	if (r == 0)
		r = settle(waiting);
	if (r == 0)
		r = wait_for(waiting);
	for (size_t i = 0; i < waiting->count; i++)
		coop_condition_end(&waiting->conditions[i]);
	free(waiting);
	return r;
}

const struct coop_tool coop_tool_wait_any = {
	.name = "wait_any",
	.title = "Wait for one of several",
	.description =
		"Waits until the first of up to 32 conditions on your processes holds: a server's "
		"port is ready, a line appears, one ends. Use it instead of polling.",
	.kind = COOP_TOOL_LOOK,
	.sets = COOP_TOOLS_DEFAULT,
	.input = input,
	.output = output,
	.waits = true,
	.run = run,
};
