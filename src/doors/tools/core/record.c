#include "doors/tools/core/record.h"

#include <string.h>

const char *const coop_tool_streams[] = {"stdin", "stdout", "stderr", "pty"};

uint64_t coop_tool_number(const json_t *object, const char *name)
{
	json_int_t value = json_integer_value(json_object_get(object, name));

	return value > 0 ? (uint64_t)value : 0;
}

json_t *coop_tool_member(const json_t *object, const char *name)
{
	json_t *value = json_object_get(object, name);

	return value ? json_incref(value) : json_null();
}

const char *coop_tool_record_id(const json_t *record)
{
	return json_string_value(json_object_get(record, "id"));
}

bool coop_tool_is_own(const json_t *record)
{
	const char *agent = json_string_value(json_object_get(record, "agent"));

	return agent && strcmp(agent, "self") == 0;
}

bool coop_tool_is_over(const json_t *record)
{
	return json_is_string(json_object_get(record, "end_cause"));
}

const json_t *coop_tool_stream(const json_t *record, const char *name)
{
	return json_object_get(json_object_get(record, "streams"), name);
}

uint64_t coop_tool_stream_end(const json_t *record, const char *name)
{
	return coop_tool_number(coop_tool_stream(record, name), "end");
}

uint64_t coop_tool_record_bytes(const json_t *record)
{
	uint64_t total = 0;
	const char *name;
	json_t *stream;

	json_object_foreach(json_object_get(record, "streams"), name, stream)
	{
		total += coop_tool_number(stream, "end");
	}
	return total;
}

enum coop_stream coop_tool_main_stream(const json_t *record)
{
	const char *kind = json_string_value(json_object_get(record, "kind"));

	return kind && strcmp(kind, "pty") == 0 ? COOP_PTY : COOP_STDOUT;
}

void coop_tool_set_process(struct coop_tool_call *call, const json_t *record)
{
	coop_tool_set(call, "pid", coop_tool_member(record, "pid"));
	coop_tool_set(call, "id", coop_tool_member(record, "id"));
}

void coop_tool_set_end(struct coop_tool_call *call, const json_t *record, int none)
{
	const json_t *end = json_object_get(record, "exit");
	bool coded = json_is_integer(json_object_get(end, "code"));

	coop_tool_set(call, "exit_code",
		      coded || !none ? coop_tool_member(end, "code") : json_integer(none));
	coop_tool_set(call, "signal", coop_tool_member(end, "signal_name"));
	coop_tool_set(call, "end_cause", coop_tool_member(record, "end_cause"));
}

json_t *coop_tool_status(const json_t *record)
{
	const char *state = json_string_value(json_object_get(record, "state"));
	const char *cause = json_string_value(json_object_get(record, "end_cause"));
	const json_t *end = json_object_get(record, "exit");

	if (cause && strcmp(cause, "lost") == 0)
		return json_string("unknown");
	if (json_is_integer(json_object_get(end, "code")))
		return json_sprintf("exited(%d)",
				    (int)json_integer_value(json_object_get(end, "code")));
	if (json_is_integer(json_object_get(end, "signal")))
		return json_sprintf("signaled(%d)",
				    (int)json_integer_value(json_object_get(end, "signal")));
	return json_string(state && strcmp(state, "stopped") == 0 ? "stopped" : "running");
}
