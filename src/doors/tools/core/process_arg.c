#include "doors/tools/core/process_arg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "doors/tools/core/record.h"
#include "interface/schema.h"

static int unknown(struct coop_tool_call *call, const char *name)
{
	(void)coop_tool_fail(call, "no_such_process", name, "there is no such process");
	return -ENOENT;
}

static int ask_record(struct coop_tool_call *call, json_t *id, json_t **ret)
{
	struct coop_tool_answer answer;
	int r = coop_tool_ask(call, "status", json_pack("{s:o}", "id", id), &answer);

	*ret = NULL;
	if (r < 0)
		return r;
	*ret = json_incref(json_object_get(answer.json, "process"));
	coop_tool_answer_clear(&answer);
	return *ret ? 0 : coop_tool_no_memory(call);
}

int coop_tool_record(struct coop_tool_call *call, const char *id, json_t **ret)
{
	return ask_record(call, json_string(id), ret);
}

/* Models write numbers as text. */
static bool is_number(const json_t *value)
{
	const char *text = json_string_value(value);

	return json_is_integer(value) ||
	       (text && *text && strlen(text) < 10 && strspn(text, "0123456789") == strlen(text));
}

static int find_pid(struct coop_tool_call *call, const char *name, const json_t *value,
		    json_t **ret)
{
	const char *text = json_string_value(value);
	long long pid = text ? strtoll(text, NULL, 10) : (long long)json_integer_value(value);
	int r = ask_record(call, json_sprintf("pid:%lld", pid), ret);

	return r < 0 && strcmp(call->error.code, "no_such_process") == 0 ? unknown(call, name) : r;
}

int coop_tool_process(struct coop_tool_call *call, const char *name, json_t **ret)
{
	const json_t *value = coop_arg(call->args, name);

	*ret = NULL;
	if (is_number(value))
		return find_pid(call, name, value, ret);
	return json_is_string(value) ? coop_tool_record(call, json_string_value(value), ret)
				     : unknown(call, name);
}

/* The id of a number is asked for once: what it means may change from one request to the next. */
int coop_tool_id_of(struct coop_tool_call *call, const char *name, const json_t *value, char **ret)
{
	const char *id = json_string_value(value);
	json_t *record = NULL;
	int r = 0;

	*ret = NULL;
	if (is_number(value)) {
		r = find_pid(call, name, value, &record);
		id = coop_tool_record_id(record);
	}
	if (r == 0 && !id)
		r = unknown(call, name);
	else if (r == 0 && !(*ret = coop_mem_strdup(id)))
		r = coop_tool_no_memory(call);
	json_decref(record);
	return r;
}

int coop_tool_id(struct coop_tool_call *call, const char *name, char **ret)
{
	return coop_tool_id_of(call, name, coop_arg(call->args, name), ret);
}
