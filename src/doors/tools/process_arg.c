#include "doors/tools/process_arg.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"

static int unknown(struct coop_tool_call *call, const char *name)
{
	(void)coop_tool_fail(call, "no_such_process", name, "there is no such process");
	return -ENOENT;
}

bool coop_tool_is_over(const json_t *record)
{
	return json_is_string(json_object_get(record, "end_cause"));
}

/* The id is asked for once: what the number means may change from one request to the next. */
static int find_pid(struct coop_tool_call *call, const char *name, json_int_t pid, char **ret)
{
	struct coop_tool_answer answer;
	char text[32];

	(void)snprintf(text, sizeof text, "pid:%lld", (long long)pid);
	int r = coop_tool_ask(call, "status", json_pack("{s:s}", "id", text), &answer);
	if (r < 0)
		return strcmp(call->error.code, "no_such_process") == 0 ? unknown(call, name) : r;
	const json_t *record = json_object_get(answer.json, "process");
	const char *id = json_string_value(json_object_get(record, "id"));
	*ret = id ? coop_mem_strdup(id) : NULL;
	coop_tool_answer_clear(&answer);
	return *ret ? 0 : coop_tool_no_memory(call);
}

int coop_tool_id_of(struct coop_tool_call *call, const char *name, const json_t *value, char **ret)
{
	*ret = NULL;
	if (json_is_integer(value))
		return find_pid(call, name, json_integer_value(value), ret);
	const char *text = json_string_value(value);
	/* Models write numbers as text. */
	if (text && *text && strlen(text) < 10 && strspn(text, "0123456789") == strlen(text)) {
		json_int_t pid = 0;
		for (const char *at = text; *at; at++)
			pid = pid * 10 + (*at - '0');
		return find_pid(call, name, pid, ret);
	}
	if (!text)
		return unknown(call, name);
	*ret = coop_mem_strdup(text);
	return *ret ? 0 : coop_tool_no_memory(call);
}

int coop_tool_id(struct coop_tool_call *call, const char *name, char **ret)
{
	return coop_tool_id_of(call, name, coop_arg(call->args, name), ret);
}

int coop_tool_record(struct coop_tool_call *call, const char *id, json_t **ret)
{
	struct coop_tool_answer answer;
	int r = coop_tool_ask(call, "status", json_pack("{s:s}", "id", id), &answer);

	*ret = NULL;
	if (r < 0)
		return r;
	*ret = json_incref(json_object_get(answer.json, "process"));
	coop_tool_answer_clear(&answer);
	return *ret ? 0 : coop_tool_no_memory(call);
}

static json_t *or_null(const json_t *object, const char *name)
{
	json_t *value = json_object_get(object, name);

	return value ? json_incref(value) : json_null();
}

void coop_tool_set_process(struct coop_tool_call *call, const json_t *record)
{
	coop_tool_set(call, "pid", or_null(record, "pid"));
	coop_tool_set(call, "id", or_null(record, "id"));
}

void coop_tool_set_end(struct coop_tool_call *call, const json_t *record, int none)
{
	const json_t *end = json_object_get(record, "exit");
	const json_t *code = json_object_get(end, "code");

	coop_tool_set(call, "exit_code",
		      json_is_integer(code) ? json_incref((json_t *)(uintptr_t)code)
		      : none                ? json_integer(none)
					    : json_null());
	coop_tool_set(call, "signal", or_null(end, "signal_name"));
	coop_tool_set(call, "end_cause", or_null(record, "end_cause"));
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
